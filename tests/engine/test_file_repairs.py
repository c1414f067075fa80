"""Repairs of files in place: in a clone that shares its files with the original, undone byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envmedic.errors import InputError
from envmedic.model.plan import MakeExecutable, ProgramScript, Relocate, ReplaceBase, Step, WriteScripts
from envmedic.tree import fingerprint
from tests.engine.world import SITE, World, replacement

TOOL = f"{SITE}/other0/bin/tool"


def repair(world: World, step: Step) -> dict[str, fingerprint.PathContent]:
    """Apply, and return the state before."""
    before = fingerprint.manifest(world.prefix)
    record = world.apply(world.plan(*replacement("2.0"), step))
    assert record.state == "done", record.failure
    return before


@pytest.fixture
def program(quick: World) -> Path:
    """A program of a package without permission to execute."""
    path = quick.prefix / TOOL
    path.parent.mkdir()
    path.write_text("#!/bin/sh\necho started\n")
    path.chmod(0o640)
    return path


def test_a_program_may_be_executed_by_those_who_may_read_it(quick: World, program: Path) -> None:
    inode = program.stat().st_ino
    before = repair(quick, MakeExecutable(programs=(TOOL,)))
    assert program.stat().st_mode & 0o7777 == 0o750
    assert program.stat().st_ino != inode
    assert subprocess.check_output([program]) == b"started\n"
    quick.undo()
    assert fingerprint.manifest(quick.prefix) == before


def test_a_script_is_written_again_and_noted_in_the_record(world: World) -> None:
    record = world.site / "other0-3.1.dist-info" / "RECORD"
    record.write_text(record.read_text() + "../../../bin/tool,sha256=gone,3\n")
    before = repair(world, WriteScripts(scripts=(ProgramScript(path="bin/tool", entry_point="platform:platform"),)))
    ran = subprocess.run([world.prefix / "bin" / "tool"], capture_output=True, text=True, check=False)
    assert "Linux" in ran.stderr
    assert "sha256=gone" not in record.read_text()
    world.undo()
    assert fingerprint.manifest(world.prefix) == before


def test_the_former_path_is_replaced_by_the_environments_own(world: World) -> None:
    script = world.prefix / "bin" / "tool"
    script.write_text("#!/former/env/bin/python\nimport sys\nprint(sys.prefix)\n")
    script.chmod(0o755)
    before = repair(world, Relocate(former="/former/env", programs=("bin/tool",)))
    assert script.read_text().startswith(f"#!{world.prefix}/bin/python\n")
    assert subprocess.check_output([script], text=True).strip() == str(world.prefix)
    world.undo()
    assert fingerprint.manifest(world.prefix) == before


@pytest.mark.parametrize(
    "step",
    [
        MakeExecutable(programs=("../outside",)),
        WriteScripts(scripts=(ProgramScript(path="/etc/x", entry_point="a:b"),)),
    ],
)
def test_no_program_outside_is_touched(quick: World, step: Step) -> None:
    before = fingerprint.manifest(quick.prefix)
    record = quick.apply(quick.plan(*replacement("2.0"), step))
    assert record.failure is not None
    assert record.failure.code == InputError.code
    assert fingerprint.manifest(quick.prefix) == before


@pytest.mark.parametrize("kind", ["link", "fifo"])
@pytest.mark.parametrize(
    "step", [MakeExecutable(programs=("bin/tool",)), WriteScripts(scripts=(ProgramScript(path="bin/tool"),))]
)
def test_nothing_but_a_file_of_the_environment_is_copied(quick: World, tmp_path: Path, step: Step, kind: str) -> None:
    key = tmp_path / "key"
    key.write_text("secret")
    tool = quick.prefix / "bin" / "tool"
    if kind == "link":
        tool.symlink_to(key)
    else:
        os.mkfifo(tool)
    before = fingerprint.manifest(quick.prefix)
    record = quick.apply(quick.plan(*replacement("2.0"), step))
    assert record.failure is not None
    assert str(tool.relative_to(quick.prefix)) in (record.failure.cause or "")
    assert fingerprint.manifest(quick.prefix) == before


def test_settings_in_another_encoding_stay_beside_the_new_base(quick: World) -> None:
    settings = quick.prefix / "pyvenv.cfg"
    settings.write_bytes(b"home = /gone\nversion = 3.0\nprompt = caf\xe9\n")
    before = repair(quick, ReplaceBase(python=sys.executable))
    version = ".".join(map(str, sys.version_info[:3]))
    home = Path(sys.executable).parent
    assert settings.read_bytes() == f"home = {home}\nversion = {version}\nprompt = caf".encode() + b"\xe9\n"
    assert (quick.prefix / "bin" / "python").readlink() == Path(sys.executable)
    quick.undo()
    assert fingerprint.manifest(quick.prefix) == before
