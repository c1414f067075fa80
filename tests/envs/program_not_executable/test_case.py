"""Programs that lost their permission to execute get it back, whichever package brought them."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.real.manifest import manifest
from tests.support.native_case import NativeCase, build_native
from tests.support.venvs import site_packages
from tests.support.wheels import make_wheel

PROGRAM = """\
import pathlib, subprocess, tool
subprocess.run([pathlib.Path(tool.__file__).parent / "bin" / "compiler"], check=True)
subprocess.run([pathlib.Path(tool.__file__).parents[4] / "bin" / "tool"], check=True)
print("works")
"""


def build(room: Path) -> NativeCase:
    """A package with a binary of its own and a script, neither of which may be executed."""
    binary = Path(shutil.which("true") or "").read_bytes()
    tool = make_wheel(
        room / "wheels", "tool", "1.0",
        files={"tool/__init__.py": "def main():\n    pass\n", "tool/bin/compiler": binary,
               "tool/bin/template.sh": "#!/bin/sh\n"},
        entry_points="[console_scripts]\ntool = tool:main\n",
    )  # fmt: skip
    case = build_native(room, [tool], ["tool"], PROGRAM)
    (case.prefix / "bin/tool").chmod(0o644)
    (site_packages(case.prefix) / "tool/bin/compiler").chmod(0o640)
    return case


def test_binary_and_script_start_again(tmp_path: Path) -> None:
    case = build(tmp_path)
    log = case.log()
    assert "PermissionError" in log.read_text()
    before = manifest(case.prefix)
    done = case.apply("--log", str(log))
    assert done.code == 0, done.told()
    plan = done.document["plan"]
    assert (plan["playbook"], plan["changes"]) == ("program-not-executable", [])
    assert plan["finding"]["signature"] == "denied-in-python"
    assert case.run().out == "works\n"
    package = site_packages(case.prefix) / "tool/bin"
    assert (package / "compiler").stat().st_mode & 0o777 == 0o750
    assert not (package / "template.sh").stat().st_mode & 0o111
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before
