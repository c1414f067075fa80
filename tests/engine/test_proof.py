"""What proves a repair: the fault seen before, or facts; and what is looked at once more in place."""

from __future__ import annotations

import msgspec
import pytest

from envmedic.model.checks import Check
from envmedic.tree import fingerprint
from tests.engine.test_apply import failure_code, unchanged
from tests.engine.world import World, finding

WORKS = Check(name="command", role="reproduction", arguments=("pass",))
"""A command of the user that does not fail, though fam is broken."""


def test_a_command_that_never_failed_is_enough_where_facts_confirm_the_fault(world: World) -> None:
    record = world.apply(world.plan(checks=(WORKS, *world.plan().checks), finding=finding(confirmed=True)))
    assert record.state == "done"
    assert record.rounds[0].failed == ()
    assert "command: did not fail before; the facts confirm the fault" in record.notes


@pytest.mark.parametrize("confirmed", [None, False])
def test_a_command_that_never_failed_proves_nothing_without_facts(world: World, confirmed: bool | None) -> None:  # noqa: FBT001
    before = fingerprint.manifest(world.prefix)
    record = world.apply(world.plan(checks=(WORKS, *world.plan().checks), finding=finding(confirmed=confirmed)))
    assert failure_code(record) == "not-confirmed"
    assert record.checks_before[1].status == "fail", "it is not the playbook's own check that refuses"
    assert record.checks_after == (), "no step was taken"
    assert unchanged(world, before, record)


def test_only_what_is_asked_for_is_checked_again_in_place(world: World) -> None:
    changed = Check(name="changed", role="regression", arguments=("import json",), in_place=True)
    others = Check(name="others", role="regression", arguments=("import csv",))
    command = Check(name="command", role="reproduction", arguments=("import fam",))
    record = world.apply(world.plan(checks=(command, *world.plan().checks, changed, others)))
    assert [item.check for item in record.smoke if item.check != "scripts"] == ["fam-imports", "changed"]


def test_scripts_are_looked_at_where_their_first_lines_were_rewritten(world: World) -> None:
    record = world.apply()
    looked = [item.status for item in record.smoke if item.check == "scripts"]
    assert looked == (["pass"] if record.staging == "relocate" else [])


def test_a_script_that_cannot_start_in_place_is_exchanged_back(world: World) -> None:
    world.options = msgspec.structs.replace(world.options, staging="relocate")
    before = fingerprint.manifest(world.prefix)

    def damage(name: str) -> None:
        if name == "relocated":
            clone = next(world.store.glob("*/env"))
            (clone / "bin" / "fam").write_text(f"#!{world.prefix}/bin/python9.9\n")

    record = world.apply(point=damage)
    assert failure_code(record) == "checks-failed"
    assert record.smoke[-1].reason == f"fam: its interpreter {world.prefix}/bin/python9.9 does not exist"
    assert unchanged(world, before, record)
