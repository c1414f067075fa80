"""SIGKILL at every point of every operation, then at every point of the recovery: nothing is ever half done."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envmedic.engine.fs.exchange import rename_noreplace
from envmedic.engine.generations.generations import history
from envmedic.engine.store import swap
from envmedic.errors import RecoveryNeeded
from envmedic.model.plan import MakeExecutable, ProgramScript, Relocate, ReplaceBase, Step, WriteScripts
from envmedic.model.ports import ApplyOptions
from envmedic.model.record import FINAL_STATES
from envmedic.tree import fingerprint
from tests.engine.world import (
    PROJECT,
    SITE,
    Crash,
    ShellInstaller,
    World,
    fails_in_place,
    in_child,
    make_environment,
    project_around,
    run_file_checks,
)

pytestmark = pytest.mark.long

Manifest = dict[str, fingerprint.PathContent]
AROUND_THE_SWAP = frozenset({
    "after-ready", "prefix-displaced", "prefix-replaced", "swapped", "before-exchanged", "after-exchanged",
})  # fmt: skip


MOVED, PROGRAM, SCRIPT = "bin/fam-moved", f"{SITE}/fam-programs/tool", "bin/fam-script"
IN_PLACE: tuple[Step, ...] = (
    Relocate(former="/former/env", programs=(MOVED,)),
    MakeExecutable(programs=(PROGRAM,)),
    WriteScripts(scripts=(ProgramScript(path=SCRIPT, entry_point="fam:main"),)),
    ReplaceBase(python=sys.executable),
)
"""A step of each kind that repairs files of the clone without an installer."""
PYTHONS = frozenset({"bin/python", "bin/python3", "pyvenv.cfg"})
"""What `ReplaceBase` makes again."""


def small_world(root: Path) -> World:
    """An environment whose repair takes a step of every kind but those of conda and compilers."""
    prefix = make_environment(root / "env")
    (prefix / PROGRAM).parent.mkdir(exist_ok=True)
    for name, mode in ((MOVED, 0o755), (SCRIPT, 0o755), (PROGRAM, 0o640)):
        if not (prefix / name).exists():
            (prefix / name).write_text("#!/former/env/bin/python\nimport fam\n")
            (prefix / name).chmod(mode)
    options, project = ApplyOptions(staging="relocate"), project_around(prefix)
    return World(prefix, options, ShellInstaller(), checks=run_file_checks, project_edit=project, also=IN_PLACE)


def check_project(world: World, *, live: bool | None) -> None:
    """Manifest and lock are whole; `live` says on which side they must be, None where a kill may have parted them."""
    for name, sides in PROJECT.items():
        now = (world.prefix.parent / name).read_bytes()
        assert now in (sides if live is None else (sides[live],)), name
        assert stat.S_IMODE((world.prefix.parent / name).stat().st_mode) == 0o640


def recover_under_fire(world: World) -> None:
    """Recover, killed at its first point, then at its second, and so on until it comes to its end."""
    kills = 0
    while not in_child(lambda: world.recover(point=Crash(kills))):  # noqa: B023  # called at once
        kills += 1


def is_settled(world: World) -> bool:
    """Whether every journal is in a final state and nothing but kept trees is left of any transaction."""
    generations = history(world.prefix).generations
    states = all(item.state in FINAL_STATES for item in generations)
    trees = all(
        (world.store / item.transaction / "env").is_dir() == (item.undo_possible or item.redo_possible)
        for item in generations
    )
    return states and trees and not [*world.store.glob("*/trash"), *world.store.glob("*/displaced")]


def is_repaired(now: Manifest, old: Manifest) -> bool:
    """Whether `now` is the repaired tree: fam replaced, files repaired in place, every other file and link as it was."""
    files = {name: content for name, content in old.items() if content.entry.kind != "d"}
    others = {name: content for name, content in files.items() if "/fam" not in name and name not in PYTHONS}
    in_place = all(now.get(name, files[name]) != files[name] for name in (MOVED, PROGRAM, SCRIPT, *PYTHONS))
    return in_place and others.items() <= now.items() and any(name.endswith("/fam-2.0.dist-info") for name in now)


def check_whole(world: World, old: Manifest, *, recovered: bool) -> None:
    """The prefix holds one whole tree, old or repaired; without exchange it may be missing until the recovery."""
    if not recovered:
        check_project(world, live=None)
    if not world.prefix.exists():
        assert not recovered
        assert list(world.store.glob("*/displaced"))
        return
    now = fingerprint.manifest(world.prefix)
    if not recovered:
        now.pop(fingerprint.UV_LOCK, None)  # held over the exchange: recovery removes what a kill left of it
    live = any(item.live for item in history(world.prefix).generations)
    assert is_repaired(now, old) if live else now == old
    if recovered:
        check_project(world, live=live)


def check_undo(world: World, old: Manifest) -> None:
    """If the repaired tree stayed, undo still gives the old one."""
    if any(item.live for item in history(world.prefix).generations):
        world.undo()
    assert fingerprint.manifest(world.prefix) == old
    check_project(world, live=False)


def kill_repairs(root: Path, names: frozenset[str] = frozenset()) -> int:
    """Kill a repair at each of its points, each in a fresh environment; returns the number of points."""
    ended, number = False, 0
    while not ended:
        world = small_world(root / str(number))
        old = fingerprint.manifest(world.prefix)
        crash = Crash(number, names)
        ended = in_child(lambda: world.apply(point=crash))  # noqa: B023  # called at once
        check_whole(world, old, recovered=False)
        recover_under_fire(world)
        assert is_settled(world), f"kill point {number}"
        check_whole(world, old, recovered=True)
        check_undo(world, old)
        number += 1
    return number - 1


def kill_moves(root: Path, prepare: Callable[[World], object], move: Callable[[World, Crash], object]) -> int:
    """Kill an undo or a redo at each of its points, always in the same environment; returns their number."""
    world = small_world(root)
    old = fingerprint.manifest(world.prefix)
    world.apply()
    ended, number = False, 0
    while not ended:
        prepare(world)
        crash = Crash(number)
        ended = in_child(lambda: move(world, crash))  # noqa: B023  # called at once
        check_whole(world, old, recovered=False)
        recover_under_fire(world)
        assert is_settled(world), f"kill point {number}"
        check_whole(world, old, recovered=True)
        number += 1
    check_undo(world, old)
    return number - 1


def make_live(world: World) -> None:
    if not history(world.prefix).generations[0].live:
        world.redo()


def make_undone(world: World) -> None:
    if history(world.prefix).generations[0].live:
        world.undo()


def test_a_repair_killed_anywhere_leaves_one_whole_environment(memory: Path) -> None:
    assert kill_repairs(memory) >= 23


@pytest.mark.usefixtures("_no_exchange")
def test_a_repair_by_renames_killed_around_the_swap_leaves_one_whole_environment(memory: Path) -> None:
    assert kill_repairs(memory, AROUND_THE_SWAP) == len(AROUND_THE_SWAP)


@pytest.mark.usefixtures("_no_exchange")
def test_a_repair_by_renames_killed_between_those_of_the_project_leaves_one_whole_project(memory: Path) -> None:
    names = frozenset({"project-saved", "project-replaced", "project-file"})
    assert kill_repairs(memory, names) == len(names) * len(PROJECT)


def test_an_undo_killed_anywhere_leaves_one_whole_environment(memory: Path) -> None:
    assert kill_moves(memory, make_live, lambda world, crash: world.undo(point=crash)) >= 6


def test_a_redo_killed_anywhere_leaves_one_whole_environment(memory: Path) -> None:
    assert kill_moves(memory, make_undone, lambda world, crash: world.redo(point=crash)) >= 6


@pytest.mark.usefixtures("_no_exchange")
def test_an_undo_by_renames_killed_anywhere_leaves_one_whole_environment(memory: Path) -> None:
    assert kill_moves(memory, make_live, lambda world, crash: world.undo(point=crash)) >= 8


@pytest.mark.usefixtures("_no_exchange")
def test_a_redo_by_renames_killed_anywhere_leaves_one_whole_environment(memory: Path) -> None:
    assert kill_moves(memory, make_undone, lambda world, crash: world.redo(point=crash)) >= 8


def test_a_repair_that_fails_in_place_killed_anywhere_leaves_the_old_environment(memory: Path) -> None:
    """The exchange back after a failing smoke check is itself killed at each point, and so is its recovery."""
    number, ended = 0, False
    names = frozenset({"after-exchanged", "swapped", "tree-discarded", "removing", "trash-emptied", "record-saved"})
    while not ended:
        world = small_world(memory / str(number))
        old = fingerprint.manifest(world.prefix)
        crash = Crash(number, names)
        world.checks = fails_in_place(world)
        ended = in_child(lambda: world.apply(point=crash))  # noqa: B023  # called at once
        recover_under_fire(world)
        assert is_settled(world), f"kill point {number}"
        assert fingerprint.manifest(world.prefix) == old
        check_project(world, live=False)
        number += 1
    assert number > len(names)


def test_pruning_killed_anywhere_keeps_the_live_tree_and_whole_generations(memory: Path) -> None:
    world = small_world(memory)
    old = fingerprint.manifest(world.prefix)
    world.apply()
    ended, number = False, 0
    while not ended:
        ended = in_child(lambda: world.prune(0, point=Crash(number)))  # noqa: B023  # called at once
        recover_under_fire(world)
        assert is_settled(world)
        check_whole(world, old, recovered=True)
        number += 1
    assert not list(world.store.glob("*/env"))


@pytest.mark.parametrize("state", ["after-ready", "swapped", "after-exchanged"])
def test_the_old_tree_is_not_dropped_when_the_environment_was_replaced_after_a_crash(memory: Path, state: str) -> None:
    world = small_world(memory)
    old = fingerprint.manifest(world.prefix)
    assert not in_child(lambda: world.apply(point=Crash(0, {state})))
    world.prefix.rename(memory / "moved away by the user")
    make_environment(world.prefix)
    fresh = fingerprint.manifest(world.prefix)
    if state == "after-ready":  # what is kept is the clone
        assert [record.state for record in world.recover()] == ["aborted"]
    else:
        with pytest.raises(RecoveryNeeded, match="replaced by something else"):
            world.recover()
        assert fingerprint.manifest(next(world.store.glob("*/env"))) == old
    assert fingerprint.manifest(world.prefix) == fresh


@pytest.mark.usefixtures("_no_exchange")
@pytest.mark.parametrize(("failing", "live"), [({3}, True), ({2, 3}, False)])
def test_renames_that_stop_halfway_are_left_to_recovery(
    memory: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: set[int],
    live: bool,  # noqa: FBT001  # of parametrize
) -> None:
    world = small_world(memory)
    old = fingerprint.manifest(world.prefix)
    with monkeypatch.context() as patch:
        patch.setattr(swap, "rename_noreplace", failing_renames(failing))
        with pytest.raises(RecoveryNeeded, match="halfway"):
            world.apply()
    assert [record.state for record in world.recover()] == ["done" if live else "aborted"]
    assert is_settled(world)
    check_whole(world, old, recovered=True)
    check_undo(world, old)


@pytest.mark.usefixtures("_no_exchange")
def test_an_undo_by_renames_that_stops_halfway_is_left_to_recovery(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = small_world(memory)
    old = fingerprint.manifest(world.prefix)
    world.apply()
    with monkeypatch.context() as patch:
        patch.setattr(swap, "rename_noreplace", failing_renames({3}))
        with pytest.raises(RecoveryNeeded, match="halfway"):
            world.undo()
    assert [record.state for record in world.recover()] == ["undone"]
    assert is_settled(world)
    assert fingerprint.manifest(world.prefix) == old


def failing_renames(failing: set[int]) -> Callable[[Path, Path], None]:
    """Renames of which those with these numbers fail, as on a disk with errors."""
    numbers = itertools.count(1)

    def rename(source: Path, target: Path) -> None:
        if next(numbers) in failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO), os.fspath(source))
        rename_noreplace(source, target)

    return rename
