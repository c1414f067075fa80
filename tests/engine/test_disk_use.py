"""The store does not grow with the number of repairs, apart from kept trees and small records."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from envmedic.engine.fs import trash
from envmedic.engine.generations.generations import history
from envmedic.engine.generations.state_diff import difference
from envmedic.engine.store import retention
from envmedic.engine.store.installed_by_repairs import unchanged
from envmedic.engine.store.live_records import live_records
from envmedic.model.events import Notice
from envmedic.model.ports import ApplyOptions
from tests.engine.test_crashes import small_world
from tests.engine.world import Crash, World, distributions, fails_in_place, in_child, replacement

pytestmark = pytest.mark.long

FILES = 3000
RECORD = 12 << 10
"""Bytes that one transaction may leave for good; a fingerprint of `FILES` files has several times as many."""


def large(world: World) -> World:
    """With many empty files, of which trees share the inodes."""
    for number in range(FILES):
        (world.prefix / "share" / str(number // 500)).mkdir(parents=True, exist_ok=True)
        (world.prefix / "share" / str(number // 500) / f"a file with a long name {number}").touch()
    world.options = ApplyOptions(staging="relocate", clone="link")
    return world


def repair(world: World, version: int) -> str:
    steps = replacement(f"{version + 1}.0", before=f"{version}.0")
    record = world.apply(world.plan(*steps, version=f"{version + 1}.0"))
    assert record.state == "done"
    return record.transaction


def held(store: Path) -> int:
    """Bytes of all files of the store outside of kept trees."""
    return sum(path.stat().st_size for path in files(store))


def files(store: Path) -> Iterator[Path]:
    for transaction in (path for path in store.iterdir() if path.name != "locks" and path.is_dir()):
        yield from (path for path in transaction.iterdir() if path.name != "env")


def test_twenty_repairs_hold_what_two_do(quick: World) -> None:
    large(quick)
    repair(quick, 1)
    repair(quick, 2)
    two = held(quick.store)
    assert two > 4 * RECORD  # fingerprints count
    for version in range(3, 21):
        repair(quick, version)
    assert held(quick.store) < two + 18 * RECORD
    found = history(quick.prefix)
    assert len(found.generations) == 20
    assert [item.kept for item in found.generations] == [True] + [False] * 19


def test_history_tells_what_is_held(quick: World) -> None:
    repair(large(quick), 1)
    shown = history(quick.prefix)
    assert shown.size_bytes >= held(quick.store)
    assert history(quick.prefix).generations[0].size_bytes < shown.size_bytes
    quick.prune(0)
    assert history(quick.prefix).size_bytes < shown.size_bytes - 2 * RECORD


def test_failed_repairs_leave_a_record(quick: World) -> None:
    large(quick)
    quick.checks = fails_in_place(quick)
    for _ in range(3):
        assert quick.apply().state == "aborted"
    assert held(quick.store) < 3 * RECORD


def test_prune_leaves_records_and_the_fingerprint_of_the_live_tree(quick: World) -> None:
    transactions = [repair(large(quick), 1), repair(quick, 2)]
    quick.prune(0)
    left = {path.relative_to(quick.store).as_posix() for path in files(quick.store)}
    first, second = transactions
    small = {"prefix", "journal.json", "record.json"}
    assert {name.partition("/")[2] for name in left if name.startswith(first)} == small
    assert {name.partition("/")[2] for name in left if name.startswith(second)} == {
        *small, "plan.json", "events.jsonl", "fingerprint-live",
    }  # fmt: skip


def test_history_lock_and_diff_work_on_what_is_left(quick: World) -> None:
    transactions = [repair(quick, version) for version in range(1, 5)]
    quick.prune(0)
    newest = live_records(quick.prefix)
    assert [record.transaction for record in newest] == transactions[::-1]
    assert unchanged(quick.prefix, newest[0])
    assert difference(quick.prefix, distributions).files_compared
    (quick.site / "fam" / "__init__.py").write_text("edited")
    assert difference(quick.prefix, distributions).changed
    old = difference(quick.prefix, distributions, before=transactions[0], after=transactions[1])
    assert [(item.before, item.after) for item in old.distributions] == [("2.0", "3.0")]
    assert not old.files_compared
    assert (old.added, old.removed, old.changed) == ((), (), ())


def test_an_undo_leads_to_a_generation_that_can_be_compared(quick: World) -> None:
    for version in range(1, 4):
        repair(quick, version)
    quick.undo()
    assert difference(quick.prefix, distributions).files_compared
    assert not difference(quick.prefix, distributions).changed
    quick.redo()
    assert not difference(quick.prefix, distributions).changed
    assert unchanged(quick.prefix, live_records(quick.prefix)[0])


def test_the_environment_as_found_can_be_compared_without_its_tree(quick: World) -> None:
    repair(quick, 1)
    quick.undo()
    quick.prune(0)
    assert difference(quick.prefix, distributions).files_compared
    (quick.site / "new").touch()
    assert len(difference(quick.prefix, distributions).added) == 1


def test_a_kill_between_two_removals_leaves_a_store_that_is_read_and_trimmed_later(memory: Path) -> None:
    number, ended = 0, False
    while not ended:
        world = small_world(memory / str(number))
        world.options, world.project_edit = ApplyOptions(staging="relocate", keep=5), None
        transactions = [repair(world, version) for version in (1, 2)]
        crash = Crash(number)
        ended = in_child(lambda: world.prune(0, point=crash))  # noqa: B023  # called at once
        assert [item.transaction for item in history(world.prefix).generations] == transactions[::-1]
        assert difference(world.prefix, distributions).files_compared
        assert len(live_records(world.prefix)) == 2
        world.recover()
        world.prune(0)
        assert len([*files(world.store)]) == 9, sorted(map(os.fspath, files(world.store)))
        number += 1
    assert number > 5


@pytest.mark.parametrize(
    "refused", [(retention, "trim"), (trash, "discard"), (trash, "empty")], ids=lambda item: item[1]
)
def test_a_repair_is_done_where_what_is_old_cannot_be_removed(
    quick: World, monkeypatch: pytest.MonkeyPatch, refused: tuple[object, str]
) -> None:
    repair(quick, 1)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def refuse_from(name: str) -> None:
        if name == "after-done":
            monkeypatch.setattr(*refused, refuse)

    steps = replacement("3.0", before="2.0")
    record = quick.apply(quick.plan(*steps, version="3.0"), point=refuse_from)
    assert (record.state, record.environment, record.failure) == ("done", "repaired", None)
    assert any("Input/output error" in note for note in record.notes)
    assert json.loads((quick.store / record.transaction / "record.json").read_bytes())["notes"] == [*record.notes]
    assert "trash-left" in [item.code for item in quick.events if isinstance(item, Notice)]
    monkeypatch.undo()
    assert history(quick.prefix).generations[0].live


def test_a_failed_repair_is_told_as_such_where_what_is_old_cannot_be_removed(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    quick.checks = fails_in_place(quick)
    monkeypatch.setattr(retention, "trim", refuse)
    record = quick.apply()
    assert record.state == "aborted"
    assert record.failure is not None
    assert record.failure.code == "checks-failed"
    assert "trash-left" in [item.code for item in quick.events if isinstance(item, Notice)]
