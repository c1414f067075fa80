"""Guard in conda environments: what conda would do there, and what a repair pinned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conda.case import CondaCase
from tests.conda.channel import Channels, channels
from tests.conda.client import conda_program
from tests.conda.referee import Referee
from tests.conda.room import Room, make_room
from tests.real.manifest import manifest
from tests.support import miniature
from tests.support.native_case import Done

pytestmark = pytest.mark.conda
OLD = ["python 3.11.*", "pytorch 2.4.*", "torchvision", "pytorch-cuda 12.1.*", "pip", "packaging"]


@pytest.fixture(scope="module")
def local() -> Channels:
    return channels()


def made(local: Channels, root: Path) -> CondaCase:
    room: Room = make_room(root / "room", local.old)
    prefix = room.by_rattler("env", OLD)
    _, index = miniature.build(room.root / "wheelhouse")
    return CondaCase(room, prefix, index, frozenset())


@pytest.fixture(scope="module")
def healthy(local: Channels, tmp_path_factory: pytest.TempPathFactory) -> CondaCase:
    """An environment that tests only ask about."""
    return made(local, tmp_path_factory.mktemp("guard-conda"))


def asked(case: CondaCase, *words: str) -> Done:
    before = manifest(case.prefix)
    conda = {"CONDA_EXE": str(conda_program())}
    done = case.envmedic("guard", "--json", "-p", str(case.prefix), *words, **conda)
    assert manifest(case.prefix) == before
    return done


@pytest.mark.parametrize(
    "command",
    [
        "conda install pytorch=2.5",
        "conda remove packaging",
        "conda install mpmath",
        "conda remove numpy",
        "conda update --all",
        "conda install --no-deps pytorch=2.5",
        "conda remove --force pytorch",
    ],
)
def test_what_is_foreseen_is_what_conda_proposes(healthy: CondaCase, command: str) -> None:
    found = {(row["name"], row["after"]) for row in asked(healthy, command).document["changes"]}
    verb, *specs = command.split()[1:]
    proposed = Referee(healthy.room).run(verb, "--dry-run", "--json", "-p", str(healthy.prefix), *specs, code=None)
    actions = json.loads(proposed).get("actions", {})
    linked = {(item["name"], item["version"]) for item in actions.get("LINK", [])}
    gone = {item["name"] for item in actions.get("UNLINK", [])} - {name for name, _ in linked}
    assert found == linked | {(name, None) for name in gone}


def test_torch_that_goes_along_is_a_harm(healthy: CondaCase) -> None:
    done = asked(healthy, "conda remove numpy")
    assert (done.code, done.document["verdict"]) == (1, "breaks"), done.told()
    assert any(item["name"] == "torchvision" for item in done.document["harms"])


def test_a_build_for_the_cpu_in_the_place_of_one_for_cuda_is_a_harm(healthy: CondaCase) -> None:
    done = asked(healthy, "conda install pytorch=2.4.1=py3.11_cpu_0")
    if done.document["verdict"] == "fails":  # the mutex of the channel forbids it beside pytorch-cuda
        assert done.code == 1
        return
    assert done.document["verdict"] == "breaks", done.told()


def test_pip_over_condas_own_makes_two_owners(healthy: CondaCase) -> None:
    done = asked(healthy, "pip install --no-deps torchvision==0.20.1")
    assert (done.code, done.document["verdict"]) == (1, "breaks"), done.told()
    assert "second-owner" in [item["kind"] for item in done.document["harms"]]


def test_what_conda_would_refuse_is_told(healthy: CondaCase) -> None:
    assert asked(healthy, "conda install pytorch=99").document["verdict"] == "fails"
    assert asked(healthy, "conda remove nothing-like-this").code == 2


def test_pins_hold_a_repair_against_conda_and_give_way_to_the_next(local: Channels, tmp_path: Path) -> None:
    case = made(local, tmp_path)
    before = manifest(case.prefix)
    case.room.force(case.prefix, "torchvision=0.18.1=py311_cu121")
    log, broken = case.log(), manifest(case.prefix)
    done = case.apply("--log", str(log), "--pin")
    assert done.code == 0, done.told()
    pinned = (case.prefix / "conda-meta" / "pinned").read_text(encoding="utf-8").splitlines()
    assert [line.split()[:2] for line in pinned] == [["torchvision", "==0.19.1"]]
    referee = Referee(case.room)
    assert referee.dry_run_changes(case.prefix, "packaging") == []
    along = referee.dry_run_changes(case.prefix, "pytorch")
    assert along == []
    held = asked(case, "conda install pytorch=2.5")
    assert (held.code, held.document["verdict"]) == (1, "fails"), held.told()
    overridden = asked(case, "conda install torchvision=0.20")
    assert (overridden.code, overridden.document["verdict"]) == (1, "undoes-repair"), overridden.told()
    assert "pin" in [item["kind"] for item in overridden.document["harms"]]
    assert ("+", "torchvision") in [row[:2] for row in referee.dry_run_changes(case.prefix, "torchvision=0.20")]
    case.undo(broken)
    assert not (case.prefix / "conda-meta" / "pinned").exists()
    assert before != broken


def test_a_later_repair_is_not_held_by_the_pins_of_an_earlier_one(local: Channels, tmp_path: Path) -> None:
    case = made(local, tmp_path)
    case.room.force(case.prefix, "torchvision=0.18.1=py311_cu121")
    for relative in ("conda-meta/pinned", "etc/envmedic/conda-pins.txt"):
        path = case.prefix / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("torchvision ==0.18.1 py311_cu121\n", encoding="utf-8")
    done = case.apply("--log", str(case.log()))
    assert done.code == 0, done.told()
    assert case.packages()["torchvision"].startswith("0.19.1")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("conda install ./filelock-3.15.4-0.conda", "file or an address"),
        ("conda install https://example.org/noarch/filelock-3.15.4-0.tar.bz2", "file or an address"),
        ("conda remove --all", "--all"),
        ("conda install --frobnicate numpy", "--frobnicate"),
    ],
)
def test_what_a_dry_run_may_carry_out_is_not_asked(healthy: CondaCase, command: str, why: str) -> None:
    done = asked(healthy, command)
    assert (done.code, done.document["verdict"]) == (1, "unanswered"), done.told()
    assert why in done.document["summary"]


def test_without_a_conda_outside_of_the_environment_there_is_no_answer(healthy: CondaCase) -> None:
    for conda in ("/nowhere/conda", str(healthy.prefix / "bin" / "conda")):
        done = healthy.envmedic("guard", "--json", "-p", str(healthy.prefix), "conda install numpy", CONDA_EXE=conda)
        assert (done.code, done.document["verdict"]) == (1, "unanswered"), done.told()


def test_files_and_other_environments_are_foreseen(healthy: CondaCase, tmp_path: Path) -> None:
    (tmp_path / "specs.txt").write_text("# ours\npytorch=2.5\n", encoding="utf-8")
    by_file = asked(healthy, f"conda install --file {tmp_path}/specs.txt").document["changes"]
    assert by_file == asked(healthy, "conda install pytorch=2.5").document["changes"] != []
    (tmp_path / "environment.yml").write_text("name: env\ndependencies:\n  - pytorch=2.5\n", encoding="utf-8")
    assert asked(healthy, f"conda env update -f {tmp_path}/environment.yml").document["changes"] == by_file
    (tmp_path / "addresses.txt").write_text("https://example.org/linux-64/a-1-0.conda\n", encoding="utf-8")
    address = asked(healthy, f"conda install --file {tmp_path}/addresses.txt").document
    assert (address["verdict"], address["changes"]) == ("unanswered", [])
    pruned = asked(healthy, f"conda env update -f {tmp_path}/environment.yml --prune").document
    assert any("--prune" in note for note in [pruned["summary"], *pruned["notes"]])
    assert asked(healthy, "conda create -n other python").code == 0
    removed = asked(healthy, f"conda env remove -p {healthy.prefix}")
    assert (removed.code, removed.document["harms"][0]["kind"]) == (1, "environment"), removed.told()
