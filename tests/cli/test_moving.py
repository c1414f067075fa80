"""``plan --policy`` and ``apply --policy``: nothing is at fault, and torch moves on with all that is bound to it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from envmedic.compat import versions
from envmedic.compat.torch_family import family
from envmedic.model.answers.family import FamilyQuery, FamilySet
from tests.cli.support import Shell, failure, state_of
from tests.envs.nms_cuda.case import REPAIRED, TORCH
from tests.support import miniature
from tests.support.index import write_index
from tests.support.miniature import Release
from tests.support.repairs import pure
from tests.support.venvs import editable_project, install, install_editable, make_venv
from tests.support.wheels import Wheel, make_wheel

NAMES = ("torch", "torchvision")


def newest() -> FamilySet:
    """The newest set that the data know for this Python and a host without a driver."""
    installed = {"torch": TORCH, "torchvision": REPAIRED}
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    query = FamilyQuery(python=python, installed=installed, members=NAMES, policies=("newest",), forward=True)  # type: ignore[arg-type]
    return family.answer(query).sets[0]


def newest_wheels(folder: Path, found: FamilySet) -> list[Wheel]:
    """Miniatures of that set."""
    torch, torchvision = (found.versions[name] for name in NAMES)
    cuda = versions.variant_cuda(found.variant)
    old = miniature.TORCH[TORCH]
    release = Release(torch, cuda, old.dispatch_keys, old.exports)
    files = miniature.torch_files(release, f"{torch}+{release.label}")
    operators = miniature.torchvision_files(release, f"{torchvision}+{release.label}")
    requires = ["numpy", f"torch (=={torch})", "pillow (!=8.3.*,>=5.3.0)"]
    return [
        make_wheel(folder, "torch", torch, files=files, summary=miniature.SUMMARY),
        make_wheel(folder, "torchvision", torchvision, files=operators, requires=requires, summary=miniature.SUMMARY),
    ]


def environment(room: Path) -> tuple[Path, dict[str, str]]:
    """A healthy environment with a trainer that accepts its torch only, and where newer releases of all are."""
    pins, _ = miniature.build(room, torch=TORCH)
    folder = room / "wheels"
    trainers = [
        pure(folder, "trainer", "1.0", "import torch\n", requires=(f"torch<={TORCH}",)),
        pure(folder, "trainer", "2.0", "import torch\n", requires=("torch>=2",)),
    ]
    index = write_index(room / "index", [*pins.values(), *trainers, *newest_wheels(folder, newest())])
    prefix = make_venv(room / "env")
    wanted = [pins[f"torch=={TORCH}"], pins[f"torchvision=={REPAIRED}"], pins["numpy==1.26.4"], pins["pillow==10.4.0"]]
    install(prefix, [*wanted, trainers[0]])
    return prefix, {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": index, "UV_NO_CONFIG": "1"}


@pytest.fixture
def moving(room: Path) -> tuple[Path, Shell]:
    prefix, variables = environment(room)
    return prefix, Shell(room / "home", variables)


def test_torch_moves_on_with_what_is_bound_to_it_and_comes_back(moving: tuple[Path, Shell], room: Path) -> None:
    prefix, user = moving
    target, found = ("-p", str(prefix)), newest()
    before = state_of(prefix)

    planned = user.envmedic("plan", "--policy", "newest", "--json", "--no-gpu", *target)
    assert planned.code == 0, planned.told()
    plan = planned.document
    assert (plan["finding"], plan["fault"], plan["playbook"], plan["extendable"]) == (None, None, None, False)
    assert [(item["name"], item["before"], item["after"]) for item in plan["changes"]] == [
        ("torch", TORCH, found.versions["torch"]),
        ("torchvision", REPAIRED, found.versions["torchvision"]),
        ("trainer", "1.0", "2.0"),
    ]
    assert any(note.startswith("trainer 1.0 requires torch<=") for note in plan["notes"])
    file = room / "plan.json"
    shown = user.envmedic("plan", "--policy", "newest", "--no-gpu", *target)
    assert f"Move torch {TORCH} → {found.versions['torch']}, torchvision {REPAIRED} → " in shown.out
    assert shown.out.rstrip().endswith(f"envmedic apply --policy newest --no-gpu -p {prefix}")
    facts = user.envmedic("facts", "--host-only", "--json").document
    facts["host"]["machine"] = "aarch64" if facts["host"]["machine"] == "x86_64" else "x86_64"
    (room / "host.json").write_text(json.dumps(facts))
    elsewhere = user.envmedic(
        "plan", "--policy", "newest", "--host", str(room / "host.json"), "--json", "--no-gpu", *target
    )
    assert any("The wheels are those for" in note for note in elsewhere.document["notes"]), elsewhere.told()
    assert not any("The wheels are those for" in note for note in plan["notes"])
    fetched = user.envmedic("plan", "--policy", "newest", "--no-gpu", "--fetch", "-o", str(file), *target)
    assert fetched.code == 0, fetched.told()
    assert state_of(prefix) == before

    for source in ("wheels", "index"):  # what was fetched is enough
        (room / source).rename(room / f"{source}-gone")
    applied = user.envmedic("apply", str(file), "--yes", "--no-gpu", "--offline", "--json")
    assert applied.code == 0, applied.told()
    assert applied.document["environment"] == "repaired"
    assert user.envmedic("verify", "--no-gpu", *target).code == 0
    for source in ("wheels", "index"):
        (room / f"{source}-gone").rename(room / source)
    again = user.envmedic("plan", "--policy", "newest", "--json", *target)
    failure(again, code=1, kind="not-confirmed", says="There is nothing to move")

    assert user.envmedic("undo", "--yes", *target).code == 0
    assert state_of(prefix) == before


def test_what_cannot_follow_is_named(moving: tuple[Path, Shell], room: Path) -> None:
    prefix, user = moving
    project = editable_project(room / "mine", "mine")
    install_editable(prefix, project)
    metadata = next(prefix.glob("lib/python3*/site-packages/mine-0.1.dist-info")) / "METADATA"
    metadata.write_text(
        f"{metadata.read_text(encoding='utf-8').rstrip()}\nRequires-Dist: torch<={TORCH}\n", encoding="utf-8"
    )
    refused = user.envmedic("plan", "--policy", "newest", "-p", str(prefix))
    assert refused.code == 1
    assert f"mine 0.1 requires torch<={TORCH}" in refused.err
    assert "it was not installed from an index" in refused.err


def test_a_policy_is_no_repair(moving: tuple[Path, Shell], room: Path) -> None:
    prefix, user = moving
    both = user.envmedic("plan", "--policy", "newest", "--playbook", "nms-cuda", "--json", "-p", str(prefix))
    failure(both, code=2, kind="input", says="--policy moves an environment on")
    empty = make_venv(room / "empty")
    none = user.envmedic("plan", "--policy", "newest", "--json", "-p", str(empty))
    failure(none, code=2, kind="input", says="There is no torch in")
