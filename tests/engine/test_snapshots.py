"""Snapshots: a generation of the environment as it is, which stays in place, and the way back to it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec
import pytest

from envmedic.engine.generations.generations import history, prune
from envmedic.engine.generations.tree_cost import held_alone
from envmedic.engine.store import marker
from envmedic.engine.store.swap import Point, no_point
from envmedic.errors import EnvironmentBusy, InputError, PreflightError, RecoveryNeeded
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions, ProcessUser
from envmedic.model.record import KeepLimits, Record
from envmedic.tree import fingerprint
from tests.engine.world import SITE, Crash, World, in_child, replacement


def snapshot(world: World, text: str = "", *, point: Point = no_point) -> Record:
    return world.apply(plan_of(world, text), point=point)


def plan_of(world: World, text: str) -> Plan:
    return msgspec.structs.replace(world.plan(), purpose="snapshot", text=text, steps=(), checks=(), changes=())


def by_hand(world: World) -> None:
    """What an installer does: it removes files, and makes others in their place."""
    module = world.site / "fam" / "__init__.py"
    module.unlink()
    module.write_text("__version__ = '9.0'\n")
    (world.site / "other0" / "new.py").write_text("new\n")
    (world.prefix / "bin" / "fam").unlink()


@pytest.mark.parametrize("mode", ["link", "copy"])
def test_a_snapshot_changes_nothing_and_undo_after_changes_by_hand_goes_back_to_it(quick: World, mode: str) -> None:
    quick.options = ApplyOptions(staging="relocate", clone=mode)  # type: ignore[arg-type]
    (quick.site / "other0" / "data").chmod(0o755)
    old, inodes = fingerprint.manifest(quick.prefix), fingerprint.fingerprint(quick.prefix)
    record = snapshot(quick, "before trying")
    assert (record.state, record.outcome, record.environment) == ("done", "snapshot", "unchanged")
    assert fingerprint.compare(inodes, fingerprint.fingerprint(quick.prefix)) == fingerprint.Differences()
    assert (quick.prefix / fingerprint.MARKER).stat().st_mode & 0o7777 == 0o644, "whose it is alone may say which it is"
    (told,) = history(quick.prefix).generations
    assert (told.text, told.purpose, told.live, told.undo_possible) == ("before trying", "snapshot", True, True)
    (quick.site / "other0").chmod(0o755)
    changed = fingerprint.manifest(quick.prefix)
    by_hand(quick)
    with pytest.raises(PreflightError, match="has changed since"):
        quick.undo()
    quick.undo(force=True)
    assert fingerprint.manifest(quick.prefix) == old
    assert marker.read(quick.prefix) is None
    quick.redo(force=True)
    assert fingerprint.manifest(quick.prefix) != changed
    assert (quick.site / "fam" / "__init__.py").read_text() == "__version__ = '9.0'\n"


def test_a_file_edited_in_place_in_both_is_named_and_a_copy_shares_none(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", clone="link")
    snapshot(quick)
    module = quick.site / "other1" / "__init__.py"
    module.write_text("edited = 'in place'\n")
    with pytest.raises(PreflightError, match="has changed since") as failed:
        quick.undo()
    assert "cannot come back" in str(failed.value.cause)
    assert failed.value.details[0] == f"{SITE}/other1/__init__.py"
    quick.undo(force=True)
    quick.options = ApplyOptions(staging="relocate", clone="copy")
    before = module.read_text()
    snapshot(quick)
    module.write_text("edited = 'again, in place'\n")
    quick.undo(force=True)
    assert module.read_text() == before


def test_a_snapshot_is_gone_back_to_by_its_id_over_repairs_and_changes_by_hand(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", keep=3)
    old = fingerprint.manifest(quick.prefix)
    first = snapshot(quick).transaction
    (quick.site / "by_hand.py").write_text("new\n")
    second = quick.apply().transaction
    assert quick.version() == "2.0"
    assert quick.undo(to=first, force=True).transaction == first
    assert fingerprint.manifest(quick.prefix) == old
    states = {item.transaction: item.state for item in history(quick.prefix).generations}
    assert states == {first: "undone", second: "undone"}


def test_undo_without_a_name_passes_over_snapshots_to_which_nothing_has_happened(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", keep=3)
    old = fingerprint.manifest(quick.prefix)
    repaired = quick.apply().transaction
    snapshot(quick, "one")
    snapshot(quick, "two")
    assert quick.undo().transaction == repaired
    assert fingerprint.manifest(quick.prefix) == old
    with pytest.raises(InputError, match="nothing to undo"):
        quick.undo()


def test_undo_goes_to_the_nearest_snapshot_after_which_something_happened(quick: World) -> None:
    snapshot(quick, "one")
    old = fingerprint.manifest(quick.prefix)
    second = snapshot(quick, "two").transaction
    (quick.site / "by_hand.py").write_text("new\n")
    snapshot(quick, "three")
    assert quick.undo(force=True).transaction == second
    assert fingerprint.manifest(quick.prefix) == old


def test_repairs_remove_no_snapshot_and_prune_does(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", keep=1)
    kept = snapshot(quick, "mine").transaction
    one = quick.apply().transaction
    two = quick.apply(quick.plan(*replacement("3.0", before="2.0"), version="3.0")).transaction
    trees = {item.transaction: item.kept for item in history(quick.prefix).generations}
    assert trees == {kept: True, one: False, two: True}
    assert quick.prune(0) == (kept, two)


def test_programs_that_run_from_it_do_not_matter(quick: World) -> None:
    quick.processes = lambda _prefix: (ProcessUser(pid=1, command="jupyter", why="exe"),)
    quick.options = ApplyOptions(staging="relocate", allow=("in-use",))
    assert snapshot(quick).state == "done"


def test_an_environment_that_changes_meanwhile_gives_no_snapshot(quick: World) -> None:
    def write(name: str) -> None:
        if name == "cloning":
            (quick.site / "late.py").write_text("late\n")

    record = snapshot(quick, point=write)
    assert record.failure is not None
    assert (record.state, record.failure.code) == ("aborted", EnvironmentBusy.code)
    assert marker.read(quick.prefix) is None
    assert not (quick.store / record.transaction / "env").exists()


def test_a_kill_leaves_a_snapshot_or_none(quick: World) -> None:
    old = fingerprint.manifest(quick.prefix)
    for number in range(40):
        ended = in_child(lambda: snapshot(quick, point=Crash(number)))  # noqa: B023  # called at once
        quick.recover()
        live = marker.read(quick.prefix)
        now = fingerprint.manifest(quick.prefix)
        assert {name: now[name] for name in now if name != fingerprint.MARKER} == old
        found = history(quick.prefix).generations
        assert {item.state for item in found} <= {"done", "aborted", "undone"}
        if live is not None:
            assert next(item for item in found if item.live).undo_possible
            quick.undo()
            assert fingerprint.manifest(quick.prefix) == old
        if ended:
            break
    else:
        pytest.fail("the snapshot never came to its end")
    assert number >= 10


def test_a_kill_right_after_the_marker_leaves_a_record_that_says_what_it_is(quick: World) -> None:
    assert not in_child(lambda: snapshot(quick, point=Crash(0, {"marked"})))
    (record,) = quick.recover()
    assert (record.state, record.outcome, record.after) == ("done", "snapshot", record.before)


def test_an_error_after_the_marker_is_left_to_recovery(quick: World) -> None:
    def fail(name: str) -> None:
        if name == "marked":
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(RecoveryNeeded):
        snapshot(quick, point=fail)
    (record,) = quick.recover()
    assert record.state == "done"
    assert (quick.store / record.transaction / "env").is_dir()


def test_limits_by_count_age_and_size(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", clone="copy")
    made = [snapshot(quick, str(number)).transaction for number in range(3)]
    assert limited(quick, KeepLimits(since="2000-01-01T00:00:00Z")) == ()
    one = held_alone(quick.store / made[0] / "env")
    assert limited(quick, KeepLimits(size_bytes=2 * one + 8192)) == (made[0],)
    assert limited(quick, KeepLimits(count=1)) == (made[1],)
    assert limited(quick, KeepLimits(since="2999-01-01T00:00:00Z")) == (made[2],)


def test_a_limit_of_size_counts_what_the_kept_ones_share_with_those_that_go(quick: World) -> None:
    quick.options = ApplyOptions(staging="relocate", clone="link")
    large = quick.site / "large.bin"
    large.write_bytes(os.urandom(1 << 20))
    made = [snapshot(quick, str(number)).transaction for number in range(3)]
    large.unlink()
    before = sum(item.size_bytes for item in history(quick.prefix).generations)
    assert history(quick.prefix).size_bytes > before + (1 << 20) - 8192, "three share what nothing else has"
    assert limited(quick, KeepLimits(size_bytes=1 << 20)) == tuple(made)


def limited(world: World, limits: KeepLimits) -> tuple[str, ...]:
    return prune(world.prefix, limits=limits, stream=world.stream())


def test_what_a_generation_costs_is_what_its_removal_frees(tmp_path: Path) -> None:
    one, two, elsewhere = (tmp_path / name for name in ("one", "two", "elsewhere"))
    for folder in (one, two, elsewhere):
        folder.mkdir()
    for name in ("twice", "both", "cached", "own"):
        (one / name).write_bytes(b"x" * 40_960)
    os.link(one / "twice", one / "twice again")
    os.link(one / "both", two / "both")
    os.link(one / "cached", elsewhere / "cached")
    (elsewhere / "theirs").write_bytes(b"x" * 40_960)
    (one / "folder").symlink_to("../elsewhere")
    (one / "file").symlink_to("../elsewhere/theirs")  # a longer target takes a block of its own
    directories = 512 * one.stat().st_blocks, 512 * two.stat().st_blocks  # none on some file systems
    assert held_alone(one) == 2 * 40_960 + directories[0], "a file with all its names in the tree counts, once"
    assert held_alone(two) == directories[1]
    assert held_alone(one, two) == 3 * 40_960 + sum(directories)
