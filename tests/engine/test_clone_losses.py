"""A repair that cannot keep owners, capabilities, attributes or flags refuses, or says which files lack what."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envmedic.engine.generations import state_diff
from envmedic.errors import EnvmedicError, PreflightError
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import Record
from envmedic.model.registries.modes import AllowName
from envmedic.render.documents.record import record_lines
from envmedic.render.text import bare
from envmedic.tree import fingerprint
from tests.engine.world import SITE, ShellInstaller, World, distributions, make_environment, run_file_checks
from tests.engine_low.support import ROOT
from tests.engine_low.support import as_user as ordinary_user
from tests.engine_low.test_attributes import NO_DUMP, give, set_flags

USER = 54321
LINKED = f"{SITE}/other3/data/edited by hand.txt"


@pytest.fixture
def theirs() -> Iterator[World]:
    """An environment of an ordinary user, on a file system with attributes and flags."""
    if os.geteuid() != 0:
        pytest.skip("only root can make another user's files")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        home = Path(name)
        make_environment(home / "env")
        for path in [home, *home.rglob("*")]:
            os.chown(path, USER, USER, follow_symlinks=False)
        options = ApplyOptions(staging="relocate", clone="link")
        yield World(home / "env", options, ShellInstaller(), checks=run_file_checks)


def as_user(action: Callable[[], Any]) -> Any:
    """The JSON-like value of `action` in a child that is the ordinary user, whose commands the child can start."""
    python = ordinary_user().python
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            sys.executable = python
            os.environ["PYTHONPATH"] = os.pathsep.join([os.fspath(ROOT), os.fspath(Path(msgspec.__file__).parents[1])])
            os.chdir(ROOT)
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)
            os.write(writer, json.dumps(action()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        found = stream.read()
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(found)


def outcome(world: World, *allow: AllowName) -> Any:
    """What a repair says: its notes, or its refusal."""
    world = replace(world, options=msgspec.structs.replace(world.options, allow=allow))
    try:
        record = world.apply()
    except EnvmedicError as error:
        return {"refused": str(error), "details": error.details, "hint": error.hint, "lift": error.allow}
    if record.failure is not None:
        return {"failed": record.failure.summary, "details": record.failure.details, "exit": record.failure.exit_code}
    return {"notes": record.notes, "environment": record.environment, "screen": screen(record)}


def screen(record: Record) -> str:
    return "\n".join(bare(row) for row in record_lines(record))


def test_a_file_of_another_owner_refuses_before_anything_is_fetched(theirs: World) -> None:
    os.chown(theirs.prefix / "bin" / "fam", 1234, USER)
    before = fingerprint.manifest(theirs.prefix)
    found = as_user(lambda: outcome(theirs))
    assert "would lose its owner or group for 1 file, such as bin/fam" in found["refused"]
    assert found["details"] == ["bin/fam (ownership)"]
    assert "--allow ownership" in found["hint"]
    assert found["lift"] == "ownership"
    assert fingerprint.manifest(theirs.prefix) == before
    assert not theirs.store.exists()


def test_capabilities_refuse_and_are_told_where_they_are_allowed_to_go(theirs: World) -> None:
    program = theirs.prefix / "bin" / "ping"
    program.write_text("")
    os.chown(program, USER, USER)
    give(program, "security.capability")
    found = as_user(lambda: outcome(theirs))
    assert found["details"] == ["bin/ping (capabilities)"]
    assert "--allow capabilities" in found["hint"]

    found = as_user(lambda: outcome(theirs, "capabilities"))
    assert found["environment"] == "repaired"
    assert "1 file: bin/ping" in found["notes"][0]
    assert found["notes"][0] in found["screen"]
    assert "security.capability" not in os.listxattr(program)
    changed = as_user(lambda: state_diff.difference(theirs.prefix, distributions, before="found", after="now").changed)
    assert "bin/ping" in changed


def test_what_only_the_clone_finds_ends_it_with_the_environment_unchanged(theirs: World) -> None:
    if Path("/proc/sys/fs/protected_hardlinks").read_text(encoding="ascii").strip() != "1":
        pytest.skip("hard links are not protected on this host")
    os.chown(theirs.prefix / LINKED, 1234, USER)
    before = fingerprint.manifest(theirs.prefix)
    found = as_user(lambda: outcome(theirs))
    assert found["details"] == [f"{LINKED} (ownership)"]
    assert found["exit"] == 1
    assert fingerprint.manifest(theirs.prefix) == before

    found = as_user(lambda: outcome(theirs, "ownership"))
    assert found["environment"] == "repaired"
    assert [note for note in found["notes"] if "ownership" in note or "Owner" in note]
    assert [note for note in found["notes"] if note.startswith("Copied in full")]


def test_lost_flags_are_a_note(theirs: World) -> None:
    set_flags(theirs.prefix / "pyvenv.cfg", NO_DUMP)
    found = as_user(lambda: outcome(theirs))
    assert found["environment"] == "repaired"
    assert found["notes"] == [
        "Flags of chattr not kept in the repaired copy (chattr sets them again): 1 file: pyvenv.cfg"
    ]


def test_an_undo_tells_of_an_attribute_that_was_set_since(theirs: World) -> None:
    for path in [theirs.prefix.parent, *theirs.prefix.parent.rglob("*")]:
        os.chown(path, 0, 0, follow_symlinks=False)
    theirs.apply()
    give(theirs.prefix / "pyvenv.cfg", "user.origin")
    with pytest.raises(PreflightError, match="has changed since") as caught:
        theirs.undo()
    assert caught.value.details == ("pyvenv.cfg",)
    difference = state_diff.difference(theirs.prefix, distributions)
    assert difference.changed == ("pyvenv.cfg",)
