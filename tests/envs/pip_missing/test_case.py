"""pip is installed where a program asks for it, and is no fault where nothing does."""

from __future__ import annotations

from pathlib import Path

from tests.real.manifest import manifest
from tests.support.native_case import NativeCase, build_native
from tests.support.wheels import make_wheel

PROGRAM = """\
import subprocess, sys
sys.exit(subprocess.run([sys.executable, "-m", "pip", "--version"]).returncode)
"""


def build(room: Path) -> NativeCase:
    """An environment with one package and without pip."""
    pip = make_wheel(
        room / "wheels", "pip", "26.0",
        files={"pip/__init__.py": "", "pip/__main__.py": "print('pip 26.0')\n"},
    )  # fmt: skip
    tool = make_wheel(room / "wheels", "tool", "1.0", files={"tool/__init__.py": ""})
    return build_native(room, [pip, tool], ["tool"], PROGRAM)


def test_pip_is_installed_where_it_is_asked_for(tmp_path: Path) -> None:
    case = build(tmp_path)
    log = case.log()
    assert "No module named pip" in log.read_text()
    before = manifest(case.prefix)
    done = case.apply("--log", str(log))
    assert done.code == 0, done.told()
    plan = done.document["plan"]
    assert plan["playbook"] == "pip-missing"
    assert [(item["name"], item["before"], item["after"]) for item in plan["changes"]] == [("pip", None, "26.0")]
    assert case.run().out == "pip 26.0\n"
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before


def test_without_a_text_its_absence_is_no_fault(tmp_path: Path) -> None:
    case = build(tmp_path)
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--json").document["verdict"] == "healthy"
