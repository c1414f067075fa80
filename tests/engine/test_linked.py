"""An environment that is a symbolic link to one of its trees: what each exchange does, and SIGKILL at each of its steps."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from envmedic.engine.fs import exchange as exchanges
from envmedic.engine.generations.generations import history
from envmedic.engine.store import swap
from envmedic.engine.store.layout import Store
from envmedic.errors import EnvmedicError, RecoveryNeeded
from envmedic.linked_prefix import linked_tree, live_tree, real_prefix
from envmedic.model.events import Notice
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import FINAL_STATES
from envmedic.tree import fingerprint
from tests.engine.test_crashes import is_settled, recover_under_fire, small_world
from tests.engine.world import Crash, World, fails_in_place, in_child, make_environment, replacement

Manifest = dict[str, fingerprint.PathContent]


def refused(first: Path, second: Path) -> None:
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), os.fspath(first), None, os.fspath(second))


@pytest.fixture
def _cannot_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that has no exchange of two names."""
    for module in (exchanges, swap):
        monkeypatch.setattr(module, "exchange", refused)


def linked_world(root: Path) -> World:
    """An environment that becomes a link with its next repair."""
    world = small_world(root)
    world.options = ApplyOptions(staging="relocate", layout="symlink", keep=5)
    return world


def again(world: World) -> None:
    """Repair an environment once more that a repair has left as fam 2.0."""
    world.also, world.options = (), ApplyOptions(staging="relocate", keep=5)
    world.project_edit = None
    assert world.apply(world.plan(*replacement("3.0", before="2.0"), version="3.0")).failure is None


@contextmanager
def watched(prefix: Path) -> Iterator[set[str]]:
    """Read the version at the prefix all the time; what was read, and how it could not be."""
    seen: set[str] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            try:
                seen.add(version_at(prefix))
            except OSError as error:  # noqa: PERF203  # each time
                seen.add(f"errno {error.errno}")

    reader = threading.Thread(target=look)
    reader.start()
    try:
        yield seen
    finally:
        stop.set()
        reader.join()


def version_at(prefix: Path) -> str:
    """The version of fam, looked up through the path each time."""
    site = next(prefix.glob("lib/python3*/site-packages"))
    return next(site.glob("fam-*.dist-info")).name


def test_the_environment_becomes_a_link_and_each_exchange_replaces_it(memory: Path) -> None:
    world = linked_world(memory)
    old = fingerprint.manifest(world.prefix)
    record = world.apply()
    assert (record.failure, record.exchange) == (None, "link")
    assert "becomes a symbolic link" in record.notes[0]
    repaired = linked_tree(world.prefix)
    assert repaired is not None
    assert repaired.name == record.transaction
    kept = memory / ".envmedic" / record.transaction / "env"
    assert fingerprint.manifest(kept) == old
    assert world.undo().state == "undone"
    assert fingerprint.manifest(world.prefix) == old
    assert live_tree(world.prefix).name == f"{record.transaction}-found"
    assert world.redo().state == "done"
    assert live_tree(world.prefix) == repaired
    again(world)
    assert world.version() == "3.0"
    for version in ("2.0", "1.0"):
        world.undo()
        assert world.version() == version
    assert fingerprint.manifest(world.prefix) == old


@pytest.mark.usefixtures("_cannot_exchange")
def test_it_is_never_missing_once_it_is_a_link(memory: Path) -> None:
    """A reader sees the one version or the other, through a later repair, undos and redos."""
    world = linked_world(memory)
    told: list[str] = []

    def agree(_plan: Plan) -> bool:
        told.extend(event.message for event in world.events if isinstance(event, Notice))
        return True

    world.confirm = agree
    record = world.apply()
    assert ["becomes a symbolic link" in told[0], "will not exist" in told[1]] == [
        True,
        True,
    ]  # before anybody is asked
    assert told == list(record.notes[:2])
    with watched(world.prefix) as seen:
        for _ in range(5):
            world.undo()
            world.redo()
        again(world)
        world.undo()
    assert seen == {"fam-1.0.dist-info", "fam-2.0.dist-info", "fam-3.0.dist-info"}


def test_others_pass_to_the_trees_and_not_into_the_store(memory: Path) -> None:
    world = linked_world(memory)
    before = os.umask(0o077)
    try:
        world.apply()
    finally:
        os.umask(before)
    way = [memory / ".envmedic-trees", live_tree(world.prefix).parent, memory / ".envmedic"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in way] == [0o755, 0o755, 0o700]


def test_repairs_of_before_are_undone_through_the_link(memory: Path) -> None:
    world = linked_world(memory)
    world.options = ApplyOptions(staging="relocate", keep=5)
    old = fingerprint.manifest(world.prefix)
    world.apply()
    middle = fingerprint.manifest(world.prefix)
    world.also, world.project_edit = (), None
    world.options = ApplyOptions(staging="relocate", layout="symlink", keep=5)
    world.apply(world.plan(*replacement("3.0", before="2.0"), version="3.0"))
    assert linked_tree(world.prefix) is not None
    world.undo()
    assert fingerprint.manifest(world.prefix) == middle
    world.undo()
    assert fingerprint.manifest(world.prefix) == old
    for version in ("2.0", "3.0"):
        world.redo()
        assert world.version() == version


def test_a_directory_that_was_put_back_by_hand_is_known_by_its_history(memory: Path) -> None:
    world = linked_world(memory)
    old = fingerprint.manifest(world.prefix)
    world.apply()
    tree = live_tree(world.prefix)
    world.prefix.unlink()
    tree.rename(world.prefix)
    world.undo()
    assert fingerprint.manifest(world.prefix) == old
    world.redo()
    assert world.version() == "2.0"
    assert is_settled(world)


def test_pruning_removes_trees_that_lie_elsewhere_and_counts_them(memory: Path) -> None:
    world = linked_world(memory)
    world.apply()
    kept = live_tree(world.prefix).parent / f"{live_tree(world.prefix).name}-found"
    found = history(world.prefix)
    assert found.size_bytes > found.generations[0].size_bytes > 0
    assert world.prune(0)
    assert not kept.exists()
    assert not os.path.lexists(world.store / found.generations[0].transaction / "env")
    assert world.version() == "2.0"


def test_files_that_name_the_tree_behind_the_link_name_the_link_after_a_repair(memory: Path) -> None:
    """As a program leaves them that resolves links: with the next repair they would lead to another tree."""
    world = linked_world(memory)
    world.apply()
    script = world.prefix / "bin" / "resolved"
    script.write_text(f"#!{live_tree(world.prefix)}/bin/python\n")
    script.chmod(0o755)
    again(world)
    assert script.read_text() == f"#!{world.prefix}/bin/python\n"
    named = [path for path in world.prefix.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in named if b".envmedic-trees" in path.read_bytes()]


def test_commands_of_a_repair_see_the_link(memory: Path) -> None:
    """In the namespace of a repair the clone is where the link leads; Python and what it writes name the link."""
    world = World(make_environment(memory / "env"), ApplyOptions(layout="symlink", keep=5))
    world.apply()
    world.options = ApplyOptions(keep=5)
    record = world.apply(world.plan(*replacement("3.0", before="2.0"), version="3.0"))
    assert record.failure is None
    assert (world.prefix / "bin" / "fam").read_text().startswith(f"#!{world.prefix}/bin/python\n")


@pytest.mark.parametrize("planted", ["elsewhere", ".envmedic-trees/env/../../other", ".envmedic-trees/other/x"])
def test_a_link_that_somebody_put_there_is_refused(memory: Path, planted: str) -> None:
    world = linked_world(memory)
    old = fingerprint.manifest(world.prefix)

    def plant() -> None:
        world.prefix.rename(memory / "away")
        (memory / "other").mkdir(exist_ok=True)
        world.prefix.symlink_to(planted)

    record = world.apply(point=Crash(0, {"compared"}, plant))
    assert record.failure is not None
    assert "was replaced by a symbolic link" in record.failure.summary
    assert str(world.prefix.readlink()) == planted
    assert fingerprint.manifest(memory / "away") == old


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a link to somebody else")
def test_a_link_of_another_user_is_refused(memory: Path) -> None:
    world = linked_world(memory)
    world.apply()
    os.chown(world.prefix, 12345, 12345, follow_symlinks=False)
    with pytest.raises(EnvmedicError):
        swap.refuse_link(world.prefix)


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_directory_that_others_can_change_holds_no_link(memory: Path, mode: int) -> None:
    world = linked_world(memory)
    memory.chmod(mode)
    try:
        with pytest.raises(EnvmedicError, match="other users can"):
            world.apply()
    finally:
        memory.chmod(0o755)
    assert not world.prefix.is_symlink()
    assert not (memory / ".envmedic-trees").exists()


def test_the_tree_that_is_live_is_never_discarded(memory: Path) -> None:
    world = linked_world(memory)
    record = world.apply()
    place = world.store / record.transaction / "env"
    place.unlink()
    place.symlink_to(f"../../.envmedic-trees/env/{live_tree(world.prefix).name}")
    with pytest.raises(EnvmedicError, match="is live"):
        world.prune(0)
    assert world.version() == "2.0"


def test_a_store_is_found_by_every_way_to_the_environment(memory: Path) -> None:
    world = linked_world(memory)
    world.apply()
    (memory / "alias").symlink_to("env")
    ways = (world.prefix, memory / "alias", live_tree(world.prefix), memory / "alias" / "bin" / "..")
    assert {Store.of(way).prefix for way in ways} == {world.prefix}
    kept = Store.of(live_tree(world.prefix).parent / "another")
    assert kept.prefix != world.prefix


def test_a_link_of_an_administrator_is_resolved_as_ever(memory: Path) -> None:
    world = linked_world(memory)
    world.options = ApplyOptions(staging="relocate")
    link = memory / "current"
    link.symlink_to("env")
    assert real_prefix(link) == world.prefix
    world.apply()
    assert str(link.readlink()) == "env"
    assert not world.prefix.is_symlink()


def test_a_link_to_a_tree_that_is_in_the_trash_goes_with_it(memory: Path) -> None:
    """As SIGKILL leaves it between the two steps of a removal, which is reached at no point."""
    world = linked_world(memory)
    directory = world.store / world.apply().transaction
    (directory / "trash").mkdir()
    (directory / "env").resolve().rename(directory / "trash" / "0")
    world.recover()
    assert not os.path.lexists(directory / "env")
    assert not history(world.prefix).generations[0].undo_possible
    assert not lost_trees(world)


def lost_trees(world: World) -> set[Path]:
    """Trees to which nothing leads."""
    every = {*(world.prefix.parent / ".envmedic-trees" / world.prefix.name).glob("*")}
    return every - {live_tree(world.prefix), *(path.resolve() for path in world.store.glob("*/env"))}


def check(world: World, old: Manifest, *, versions: set[str]) -> None:
    """The path leads to one whole tree."""
    now = fingerprint.manifest(world.prefix)
    now.pop(fingerprint.UV_LOCK, None)
    assert world.version() in versions
    assert world.version() != "1.0" or now == old


def kill_repairs(root: Path, *, missing: bool) -> int:
    """Kill the repair that makes a link, at each step from its exchange on; `missing` is whether the path may be."""
    ended, number, gone = False, 0, 0
    while not ended:
        world = linked_world(root / str(number))
        old = fingerprint.manifest(world.prefix)
        crash = Crash(number, AROUND)
        ended = in_child(lambda: world.apply(point=crash))  # noqa: B023  # called at once
        if os.path.lexists(world.prefix):
            check(world, old, versions={"1.0", "2.0"})
        else:
            gone += 1
        recover_under_fire(world)
        assert is_settled(world), f"kill point {number}"
        check(world, old, versions={"1.0", "2.0"})
        if world.version() == "2.0":
            world.undo()
        assert fingerprint.manifest(world.prefix) == old
        assert not lost_trees(world)
        number += 1
    assert gone == int(missing)
    return number - 1


AROUND = frozenset({
    "after-ready", "compared", "tree-moved", "links-made", "became-link", "prefix-displaced", "prefix-replaced",
    "link-replaced", "swapped", "before-exchanged", "after-exchanged", "tree-discarded", "trash-emptied",
})  # fmt: skip


@pytest.mark.long
def test_a_repair_that_makes_a_link_killed_anywhere_leaves_one_whole_environment(memory: Path) -> None:
    assert kill_repairs(memory, missing=False) >= 9


@pytest.mark.long
@pytest.mark.usefixtures("_cannot_exchange")
def test_the_same_by_renames_is_missing_at_one_step_alone_until_it_is_recovered(memory: Path) -> None:
    assert kill_repairs(memory, missing=True) >= 10


def kill_moves(world: World, old: Manifest, prepare: Callable[[], object], move: Callable[[Crash], object]) -> int:
    """Kill an operation on a link at each of its points; before and after the recovery the path leads to one whole tree."""
    ended, number = False, 0
    while not ended:
        prepare()
        crash = Crash(number)
        ended = in_child(lambda: move(crash))  # noqa: B023  # called at once
        check(world, old, versions={"1.0", "2.0"})
        recover_under_fire(world)
        assert is_settled(world), f"kill point {number}"
        assert not lost_trees(world)
        check(world, old, versions={"1.0", "2.0"})
        number += 1
    return number - 1


@pytest.mark.long
@pytest.mark.usefixtures("_cannot_exchange")
def test_undo_and_redo_of_a_link_killed_anywhere_lead_to_one_whole_tree(memory: Path) -> None:
    world = linked_world(memory)
    old = fingerprint.manifest(world.prefix)
    world.apply()

    def live() -> None:
        if world.version() == "1.0":
            world.redo()

    def undone() -> None:
        if world.version() == "2.0":
            world.undo()

    with watched(world.prefix) as seen:
        assert kill_moves(world, old, live, lambda crash: world.undo(point=crash)) >= 7
        assert kill_moves(world, old, undone, lambda crash: world.redo(point=crash)) >= 7
    assert seen == {"fam-1.0.dist-info", "fam-2.0.dist-info"}
    undone()
    assert fingerprint.manifest(world.prefix) == old


@pytest.mark.long
def test_an_undo_of_a_repair_of_before_killed_anywhere_leads_to_one_whole_tree(memory: Path) -> None:
    """Its kept tree is first moved to the others."""
    ended, number = False, 0
    while not ended:
        world = linked_world(memory / str(number))
        world.options = ApplyOptions(staging="relocate", keep=5)
        old = fingerprint.manifest(world.prefix)
        world.apply()
        world.also, world.project_edit = (), None
        world.options = ApplyOptions(staging="relocate", layout="symlink", keep=5)
        world.apply(world.plan(*replacement("3.0", before="2.0"), version="3.0"))
        world.undo()
        crash = Crash(number)
        ended = in_child(lambda: world.undo(point=crash))  # noqa: B023  # called at once
        check(world, old, versions={"1.0", "2.0"})
        recover_under_fire(world)
        assert all(item.state in FINAL_STATES for item in history(world.prefix).generations)
        assert not [*world.store.glob("*/displaced"), *world.store.glob("*/link")]
        assert not lost_trees(world)
        check(world, old, versions={"1.0", "2.0"})
        number += 1
    assert number > 7


@pytest.mark.long
def test_a_link_whose_tree_fails_in_place_killed_anywhere_leads_to_the_old_tree(memory: Path) -> None:
    number, ended = 0, False
    names = AROUND | {"removing", "record-saved"}
    while not ended:
        world = linked_world(memory / str(number))
        old = fingerprint.manifest(world.prefix)
        crash = Crash(number, names)
        world.checks = fails_in_place(world)
        ended = in_child(lambda: world.apply(point=crash))  # noqa: B023  # called at once
        recover_under_fire(world)
        assert is_settled(world), f"kill point {number}"
        assert not lost_trees(world)
        assert fingerprint.manifest(world.prefix) == old
        number += 1
    assert number > len(names)


@pytest.mark.long
def test_pruning_a_link_killed_anywhere_keeps_the_live_tree(memory: Path) -> None:
    world = linked_world(memory)
    world.apply()
    ended, number = False, 0
    while not ended:
        ended = in_child(lambda: world.prune(0, point=Crash(number)))  # noqa: B023  # called at once
        recover_under_fire(world)
        assert is_settled(world)
        assert world.version() == "2.0"
        number += 1
    assert [path.name for path in live_tree(world.prefix).parent.iterdir()] == [live_tree(world.prefix).name]


@pytest.mark.parametrize("failing", [1, 2, 3, 4])
@pytest.mark.usefixtures("_cannot_exchange")
def test_renames_that_fail_leave_the_environment_or_its_recovery(
    memory: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    world = linked_world(memory)
    old = fingerprint.manifest(world.prefix)
    numbers = iter(range(1, 100))

    def rename(source: Path, target: Path) -> None:
        if next(numbers) == failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO), os.fspath(source))
        exchanges.rename_noreplace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(swap, "rename_noreplace", rename)
        try:
            world.apply()
        except RecoveryNeeded:
            world.recover()
    assert is_settled(world)
    assert not lost_trees(world)
    check(world, old, versions={"1.0", "2.0"})
    if world.version() == "2.0":
        world.undo()
    assert fingerprint.manifest(world.prefix) == old
