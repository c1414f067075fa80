"""An editable install whose source was moved: the answer says what brings its module back, and that does."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.real.manifest import manifest
from tests.support.native_case import build_native
from tests.support.venvs import editable_project, install_editable
from tests.support.wheels import make_wheel


def test_the_named_command_brings_the_module_back(tmp_path: Path) -> None:
    case = build_native(
        tmp_path / "room", [make_wheel(tmp_path / "wheels", "tool", "1.0")], ["tool"], "import shopkit\n"
    )
    folder = editable_project(case.room / "libs" / "shopkit", "shopkit")
    install_editable(case.prefix, folder)
    present = case.room / "packages" / "shopkit"
    folder.parent.rename(present.parent)
    before = manifest(case.prefix)
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", str(case.log())).document["findings"][0]
    assert (found["playbook"], found["fault"], found["confirmed"]) == ("lost-source", "half-installed", True)
    told, command, _ = found["advice"][0].split("`")
    assert told == f"{present} has a project of that name: if it is the one, "
    done = case.envmedic(*shlex.split(command)[1:])
    assert done.code == 0, done.told()
    assert case.run().code == 0
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before
