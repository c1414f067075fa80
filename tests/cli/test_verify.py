"""``envmedic verify`` passes on a sound environment and not on a broken one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Shell, user_of
from tests.envs.nms_cuda.case import REPAIRED, Case, build
from tests.support.venvs import site_packages


@pytest.fixture
def sound(room: Path) -> Case:
    """The miniature environment with the torchvision that belongs to its torch."""
    return build(room / "sound", torchvision=REPAIRED)


def verify(case: Case, home: Path, *arguments: str, code: int) -> dict[str, Any]:
    done = user_of(case, home).envmedic("verify", "--json", "--no-gpu", "-p", str(case.prefix), *arguments)
    assert done.code == code, done.told()
    return done.document


def add(case: Case, name: str, source: str, *more: str) -> None:
    """Put a distribution of one module, whose top_level.txt lists `more` names besides, into the environment."""
    site = site_packages(case.prefix)
    (site / f"{name}.py").write_text(source)
    info = site / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
    (info / "top_level.txt").write_text("\n".join([name, *more]) + "\n")
    (info / "RECORD").write_text(f"{name}.py,,\n")


def test_a_sound_environment_passes_whatever_its_wheels_list(sound: Case, room: Path) -> None:
    add(sound, "research", "x = 1\n", "dist", "docs", "_research", "tutorials")
    add(sound, "plots", "import nowhere_to_be_found\n")
    found = verify(sound, room / "home", code=0)
    assert found["passed"]
    assert found["excused"] == ["import plots: nowhere_to_be_found is not installed"]
    checks = [item["check"] for item in found["outcomes"]]
    assert {"import torch", "import torchvision", "import research", "torchvision-nms", "pip-check"} <= set(checks)
    assert not {"import dist", "import docs", "import _research"} & set(checks)
    text = user_of(sound, room / "home").envmedic("verify", "--no-gpu", "-p", str(sound.prefix))
    assert "does not decide: import plots: nowhere_to_be_found is not installed" in text.out
    assert "clone" not in text.err, "there is none"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise ValueError('numpy.dtype size changed')", "ValueError: numpy.dtype size changed"),
        ("import os; os.abort()", "ended by SIGABRT"),
    ],
)
def test_a_package_that_is_broken_itself_does_not_pass(sound: Case, room: Path, source: str, says: str) -> None:
    add(sound, "pandas", source)
    found = verify(sound, room / "home", "--check", "import", code=1)
    assert [(item["check"], item["reason"]) for item in found["outcomes"] if item["status"] != "pass"] == [
        ("import pandas", says)
    ]


def test_a_broken_torchvision_does_not_pass(case: Case, room: Path) -> None:
    failed = {item["check"] for item in verify(case, room / "home", code=1)["outcomes"] if item["status"] == "fail"}
    assert "import torchvision" in failed


def test_an_environment_without_torch_is_not_asked_for_it(room: Path) -> None:
    from tests.support.venvs import make_venv

    prefix = make_venv(room / "plain")
    shell = Shell(room / "home")
    done = shell.envmedic("verify", "--json", "--no-gpu", "-p", str(prefix))
    assert done.code == 0, done.told()
    assert f"warning: There is no torch in {prefix}" in done.err
    assert {item["check"].split()[0] for item in done.document["outcomes"]} <= {"import", "pip-check"}
    asked = shell.envmedic("verify", "--json", "--no-gpu", "--check", "matmul", "-p", str(prefix))
    assert asked.code == 1, "what is asked for must be there"


def test_a_baseline_decides_over_what_got_worse(sound: Case, room: Path) -> None:
    add(sound, "pandas", "raise ValueError('numpy.dtype size changed')")
    broken = verify(sound, room / "home", "--check", "import", code=1)
    baseline = room / "baseline.json"
    baseline.write_text(json.dumps(broken))
    same = verify(sound, room / "home", "--check", "import", "--baseline", str(baseline), code=0)
    assert same["baseline"] == str(baseline)
    assert same["as_before"] == ["import pandas: fail, ValueError: numpy.dtype size changed"]
    (site_packages(sound.prefix) / "pandas.py").write_text("")
    (site_packages(sound.prefix) / "numpy/__init__.py").write_text("raise ImportError('no numpy')")
    worse = verify(sound, room / "home", "--check", "import", "--baseline", str(baseline), code=1)
    assert worse["better"] == ["import pandas: pass (fail before)"]
    assert worse["regressions"] == ["import numpy: fail, ImportError: no numpy (passed before)"]
    failed = next(item for item in worse["outcomes"] if item["check"] == "import numpy")
    assert "companion-version" in failed["points_to"]


def test_a_baseline_that_is_none_is_refused_before_anything_runs(sound: Case, room: Path) -> None:
    (room / "no.json").write_text("{}")
    for name, says in (("no.json", "not a valid Verification"), ("absent.json", "cannot be read")):
        refused = verify(sound, room / "home", "--baseline", str(room / name), code=2)
        assert says in refused["summary"]


def test_the_quick_profile_imports_the_torch_family_alone(sound: Case, room: Path) -> None:
    add(sound, "research", "x = 1\n")
    found = verify(sound, room / "home", "--profile", "quick", code=0)
    assert [item["check"] for item in found["outcomes"] if item["check"].startswith("import ")] == [
        "import torch", "import torchvision",
    ]  # fmt: skip
