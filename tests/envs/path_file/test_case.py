"""A path file that was left behind goes, and Python starts without a word."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.real.manifest import manifest
from tests.support.native_case import NativeCase, build_native
from tests.support.venvs import site_packages
from tests.support.wheels import make_wheel

PROGRAM = "import tool\n"
LEFT = "import os; enabled = os.environ.get('HACK', 'local') == 'local'; enabled and __import__('_hack').add_shim();\n"


def build(room: Path, *, lists_it: bool = False) -> NativeCase:
    """A package, and beside it the path file of one that is gone; with `lists_it` only the module of that one is."""
    tool = make_wheel(room / "wheels", "tool", "1.0", files={"tool.py": ""})
    hack = make_wheel(room / "wheels", "hack", "1.0", files={"_hack.py": "def add_shim(): pass\n", "hack.pth": LEFT})
    case = build_native(room, [tool, hack], ["tool", "hack"], PROGRAM)
    site = site_packages(case.prefix)
    (site / "_hack.py").unlink()
    if not lists_it:
        shutil.rmtree(site / "hack-1.0.dist-info")
    return case


def test_a_path_file_that_is_left_over_is_removed(tmp_path: Path) -> None:
    case = build(tmp_path)
    failing = case.run()
    assert failing.code == 0
    assert "Error processing line 1 of" in failing.err
    before = manifest(case.prefix)
    log = tmp_path / "error.log"
    log.write_text(failing.err)
    done = case.envmedic("apply", "-p", str(case.prefix), "--log", str(log), "--yes", "--json")
    assert done.code == 0, done.told()
    plan = done.document["plan"]
    assert (plan["playbook"], plan["changes"]) == ("path-file", [])
    assert case.run().err == ""
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json").document["verdict"] == "healthy"
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before


def test_of_an_installed_distribution_its_module_comes_back_and_the_path_file_stays(tmp_path: Path) -> None:
    case = build(tmp_path, lists_it=True)
    done = case.apply()
    assert done.code == 0, done.told()
    assert done.document["plan"]["playbook"] == "half-installed"
    assert case.run().err == ""


@pytest.mark.parametrize(
    "line",
    [
        "import tool",
        "import os, sys, distutils",
        "import sys; exec('try:\\n import nothing_here\\nexcept ImportError: pass')",
        "import brought",
    ],
)
def test_a_path_file_that_finds_its_modules_is_no_fault(tmp_path: Path, line: str) -> None:
    case = build(tmp_path)
    site = site_packages(case.prefix)
    (site / "hack.pth").write_text(f"{line}\n")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "brought.py").write_text("")
    (site / "other.pth").write_text(f"{tmp_path / 'source'}\n")
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json").document["verdict"] == "healthy"
