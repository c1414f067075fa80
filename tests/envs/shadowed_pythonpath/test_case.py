"""A package that PYTHONPATH puts first is left out once the environment unsets the variable."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.envs.shadowed_pythonpath.case import build
from tests.support.native_case import NativeCase
from tests.support.venvs import site_packages

WORKS = "4 of 4 cells by grid 1.5\n"


def activated(case: NativeCase, pythonpath: Path) -> subprocess.CompletedProcess[str]:
    """The user's program in a shell that has activated the environment."""
    script = f". {case.prefix}/bin/activate && python {case.program}"
    env = {**case.variables(), "PYTHONPATH": str(pythonpath)}
    return subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=False)


def test_the_environment_unsets_the_variable(tmp_path: Path) -> None:
    case, elsewhere = build(tmp_path)
    assert case.run().out == WORKS
    before = activated(case, elsewhere)
    assert "grid 1.2 is imported, 1.5 is installed" in before.stderr
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", PYTHONPATH=str(elsewhere)).document
    assert [(item["fault"], item["playbook"]) for item in found["findings"]] == [
        ("duplicate-install", "shadowed-pythonpath")
    ]
    done = case.apply(PYTHONPATH=str(elsewhere))
    assert done.code == 0, done.told()
    assert activated(case, elsewhere).stdout == WORKS


def test_a_variable_that_hides_nothing_is_left_alone(tmp_path: Path) -> None:
    case, _ = build(tmp_path)
    own = tmp_path / "project"
    (own / "tests").mkdir(parents=True)
    (own / "tests" / "__init__.py").touch()
    (own / "helpers.py").touch()
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", PYTHONPATH=str(own)).document
    assert found["verdict"] == "healthy"
    same = case.envmedic(
        "diagnose", "-p", str(case.prefix), "--json", PYTHONPATH=str(site_packages(case.prefix))
    ).document
    assert same["verdict"] == "healthy"
