from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from envmedic.engine.generations.generations import history
from envmedic.errors import RecoveryNeeded
from envmedic.tree import fingerprint
from tests.engine.world import Crash, World, in_child, make_environment

FOREIGN = {"schema": "envmedic.journal/9"}


@pytest.fixture
def interrupted(quick: World) -> World:
    """Killed in the middle of its steps: the journal says `repairing`."""
    assert not in_child(lambda: quick.apply(point=Crash(0, {"step-taken"})))
    return quick


def journal(world: World) -> Path:
    return next(world.store.glob("*/journal.json"))


def transactions(world: World) -> dict[str, fingerprint.PathContent]:
    """Everything in the directories of transactions."""
    return {name: content for name, content in fingerprint.manifest(world.store).items() if name[0].isdigit()}


@pytest.mark.parametrize(
    "damage",
    [
        lambda _text: "",
        lambda text: text[: len(text) // 2],
        lambda _text: "\x00\xff not json",
        lambda text: json.dumps({**json.loads(text), **FOREIGN}),
        lambda text: json.dumps({**json.loads(text), "transaction": "20200101T000000Z-00000000"}),
        lambda text: json.dumps({**json.loads(text), "state": "half"}),
        lambda text: json.dumps({**json.loads(text), "surprise": 1}),
    ],
    ids=["empty", "truncated", "rubbish", "foreign", "another's", "unknown-state", "unknown-field"],
)
def test_a_damaged_journal_is_told_with_what_to_do_and_nothing_is_deleted(
    interrupted: World, damage: Callable[[str], str]
) -> None:
    path = journal(interrupted)
    path.write_text(damage(path.read_text()), encoding="latin-1")
    before, kept = fingerprint.manifest(interrupted.prefix), transactions(interrupted)
    for command in (interrupted.recover, interrupted.apply, interrupted.undo, lambda: history(interrupted.prefix)):
        with pytest.raises(RecoveryNeeded) as caught:
            command()
        assert caught.value.exit_code == 6
        assert str(path) in (caught.value.cause or "")
        assert "mv " in (caught.value.hint or "")
    assert fingerprint.manifest(interrupted.prefix) == before
    assert transactions(interrupted) == kept


def test_the_advice_for_a_damaged_journal_works(interrupted: World) -> None:
    path = journal(interrupted)
    path.write_text("{")
    with pytest.raises(RecoveryNeeded) as caught:
        interrupted.recover()
    subprocess.run((caught.value.hint or "").partition(": ")[2], shell=True, check=True)
    assert interrupted.recover() == ()
    assert interrupted.apply().state == "done"


def test_a_damaged_journal_of_another_environment_does_not_matter(interrupted: World) -> None:
    journal(interrupted).write_text("{")
    other = dataclasses.replace(interrupted, prefix=make_environment(interrupted.prefix.parent / "other"))
    assert other.apply().state == "done"


def test_a_damaged_record_is_told(interrupted: World) -> None:
    next(interrupted.store.glob("*/record.json")).write_text("{")
    with pytest.raises(RecoveryNeeded, match="record"):
        interrupted.recover()


def test_the_next_command_recovers_by_itself(interrupted: World) -> None:
    record = interrupted.apply()
    assert record.state == "done"
    states = {item.transaction: item.state for item in history(interrupted.prefix).generations}
    assert sorted(states.values()) == ["aborted", "done"]


def test_recover_returns_the_records_of_what_it_settled(interrupted: World) -> None:
    (record,) = interrupted.recover()
    assert record.failure is not None
    assert (record.state, record.environment, record.failure.code) == ("aborted", "unchanged", "interrupted")
    assert "repairing" in (record.error or "")
    assert interrupted.recover() == ()


def test_recovering_where_nothing_ever_happened_writes_nothing(quick: World) -> None:
    assert quick.recover() == ()
    assert not quick.store.exists()


def test_a_prefix_that_is_gone_is_not_taken_for_recovered(interrupted: World) -> None:
    interrupted.prefix.rename(interrupted.prefix.with_name("moved"))
    with pytest.raises(RecoveryNeeded, match="does not exist"):
        interrupted.recover()
    assert list(interrupted.store.glob("*/env"))
    interrupted.prefix.with_name("moved").rename(interrupted.prefix)
    assert interrupted.recover()[0].state == "aborted"
