"""The power is cut after every call of a repair, an undo or a redo: what a file system may have kept is recovered.

The calls are those of a real run, seen by strace. From them come the states of the disk: what syncs have covered is there;
of the rest any beginning, or all but one directory's changes and what followed from them, and of files that were not
synced the data or nothing. Each state is made on disk, at the path of the run, and recovered there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import msgspec

from envmedic.engine.fs import trash
from envmedic.engine.generations.generations import history
from envmedic.errors import EnvmedicError
from envmedic.tree import fingerprint
from tests.engine.test_crashes import Manifest, is_repaired, is_settled, small_world
from tests.engine.world import World
from tests.faults.cases import Case
from tests.faults.syscall_log import FileSystem, Inode, record

OPERATIONS = ("apply", "undo", "redo")
_SAMPLES = 3
"""Beginnings, and directories left behind, that are tried after each call; all where there are no more."""
_SHORT_EVERY = 8
"""A short run takes one state of so many."""

_RUN = """
import dataclasses, sys
from pathlib import Path
from envmedic.engine.transaction import transaction
from tests.faults import powercut
operation, root, exchange = sys.argv[1:]
world = powercut.world_at(Path(root), exchange)
measured = transaction.preflight
transaction.preflight = lambda *a, **b: dataclasses.replace(measured(*a, **b), exchange=exchange)
record = getattr(world, operation)()
assert record.failure is None, record.failure
"""

Entries = dict[Inode, dict[str, Inode]]


@dataclass(frozen=True)
class State:
    """What is on the disk when the power comes back."""

    entries: Entries
    data: dict[Inode, bytes]


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every operation, with each way to put a tree in the place of another."""
    for method in ("exchange",) if short else ("exchange", "two-renames", "link"):
        for operation in OPERATIONS[:1] if short else OPERATIONS:
            yield f"{operation}, {method}", partial(survive, folder / "cut", operation, method, short=short)


def world_at(root: Path, method: str = "exchange") -> World:
    """The environment of `small_world` at `root`, which may have been made before."""
    world = small_world(root) if not (root / "env").exists() else _again(root)
    if method == "link":
        world.options = msgspec.structs.replace(world.options, layout="symlink")
    return world


def _again(root: Path) -> World:
    with mock.patch("tests.engine.test_crashes.make_environment", lambda prefix: prefix):
        return small_world(root)


def survive(root: Path, operation: str, method: str, *, short: bool = False) -> tuple[str, str]:
    """Record the operation, cut the power after each of its calls, and recover from every state."""
    world = world_at(root, method)
    old = fingerprint.manifest(world.prefix)
    log = root.with_name("calls")
    try:
        for earlier in OPERATIONS[: OPERATIONS.index(operation)]:
            getattr(world, earlier)()
        disk = FileSystem(root)
        before = _kinds(root, disk)
        calls = record(["-c", _RUN, operation, root, method], log)
        cut = Cut(disk, world, old, method)
        for call in calls:
            changed = disk.apply(call)
            if changed:
                cut.take()
        seen = _kinds(root, disk)
        for state in cut.states[:: _SHORT_EVERY if short else 1]:
            cut.judge(state, before | seen)
    finally:
        trash.empty(root)
        log.unlink(missing_ok=True)
    tried = len(cut.states[:: _SHORT_EVERY if short else 1])
    return "whole", f"{cut.moments} cuts, {tried} states, {cut.old} old, {cut.new} new"


def _kinds(root: Path, disk: FileSystem) -> dict[Inode, os.stat_result]:
    """Modes, owners and times of what is there; the model has to agree with it."""
    found = {}

    def look(path: Path, inode: Inode) -> None:
        found[inode] = path.lstat()
        if inode.kind == "d":
            names = {item.name for item in path.iterdir()}
            assert names == {*inode.entries}, f"the model of {path}: {names ^ {*inode.entries}}"
            for name, item in inode.entries.items():
                look(path / name, item)
        else:
            content = bytes(path.readlink()) if inode.kind == "l" else path.read_bytes()
            assert content == inode.data, f"the model of {path}"

    look(root, disk.top)
    return found


class Cut:
    """Collects the states that cuts may leave, and judges each."""

    def __init__(self, disk: FileSystem, world: World, old: Manifest, method: str) -> None:
        self._disk, self._world, self._before, self._method = disk, world, old, method
        self._known: set[bytes] = set()
        self._random = random.Random(16)
        self.states: list[State] = []
        self.moments = self.old = self.new = 0

    def take(self) -> None:
        """Keep the states that a cut at this moment may leave, without those that are known."""
        self.moments += 1
        disk = self._disk
        for lost in self._lost():
            entries = self._replayed(lost)
            inodes = [inode for inode in _reachable(entries, disk.top) if inode.kind == "f"]
            for durable in (True, False):
                data = {inode: (inode.durable or b"") if durable else inode.data for inode in inodes}
                state = State(entries, data)
                digest = _digest(state, disk.top)
                if digest not in self._known:
                    self._known.add(digest)
                    self.states.append(state)

    def _lost(self) -> Iterator[set[int]]:
        """Changes that the disk may lack."""
        pending = self._disk.pending
        yield set()
        yield {*pending}
        numbers = range(1, len(pending))
        for keep in sorted(self._random.sample(numbers, min(_SAMPLES, len(numbers)))):
            yield {*pending[keep:]}
        first = {place: number for number in reversed(pending) for place, _, _ in self._disk.changes[number]}
        starts = [*dict.fromkeys(first.values())]
        for start in sorted(self._random.sample(starts, min(_SAMPLES, len(starts)))):
            yield self._following(start)

    def _following(self, start: int) -> set[int]:
        """A change and those after it that have a directory in common with one of them."""
        lost: set[int] = set()
        places: set[Inode] = set()
        for number in self._disk.pending:
            touched = {place for place, _, _ in self._disk.changes[number]}
            if number == start or not places.isdisjoint(touched):
                lost.add(number)
                places |= touched
        return lost

    def _replayed(self, lost: set[int]) -> Entries:
        entries = {inode: dict(names) for inode, names in self._disk.found.items() if inode.kind == "d"}
        for number, change in enumerate(self._disk.changes):
            if number not in lost:
                for directory, name, inode in change:
                    names = entries.setdefault(directory, {})
                    if inode is None:
                        names.pop(name, None)
                    else:
                        names[name] = inode
        return entries

    def judge(self, state: State, seen: dict[Inode, os.stat_result]) -> None:
        """Make the state on disk and recover there: one whole environment, and the other one an undo or redo away."""
        world, old = self._world, self._before
        _make(state, self._disk.top, world.prefix.parent, seen)
        there = world.prefix.is_dir()
        assert there or self._method == "two-renames", "no environment in its place"
        # inode numbers of files made anew say nothing; as on overlayfs, fingerprints go without
        with mock.patch.object(fingerprint, "_keeps_inodes", return_value=False):
            side = recovered(world, old)
        self.new += side == "new"
        self.old += side == "old"


def recovered(world: World, old: Manifest) -> str:
    """Recover; returns ``old`` or ``new``, whichever is there, whole. The other one is an undo or redo away.

    Raises AssertionError where anything else is there.
    """
    try:
        world.recover()
        assert is_settled(world)
        generations = history(world.prefix).generations
        live = any(item.live for item in generations)
        if live:
            assert is_repaired(fingerprint.manifest(world.prefix), old), "neither old nor new"
            world.undo(force=True)
        assert fingerprint.manifest(world.prefix) == old, "not the old one to the byte"
        if any(item.redo_possible for item in generations):
            assert is_repaired(_redone(world), old), "the kept tree is not whole"
    except EnvmedicError as error:
        raise AssertionError(f"{error.summary}: {error.cause}") from error
    return "new" if live else "old"


def _redone(world: World) -> Manifest:
    world.redo(force=True)
    return fingerprint.manifest(world.prefix)


def _reachable(entries: Entries, top: Inode) -> Iterator[Inode]:
    yield top
    for inode in entries.get(top, {}).values():
        yield from _reachable(entries, inode)


def _digest(state: State, top: Inode) -> bytes:
    total = hashlib.sha256()

    def add(name: str, inode: Inode) -> None:
        content = hashlib.sha256(state.data.get(inode, inode.data)).hexdigest()
        total.update(f"{name}\0{inode.kind}{id(inode)}{content}".encode())
        for key, item in sorted(state.entries.get(inode, {}).items(), key=lambda pair: pair[0]):
            add(key, item)
        total.update(b"/")

    add("", top)
    return total.digest()


def _make(state: State, top: Inode, root: Path, seen: dict[Inode, os.stat_result]) -> None:
    """Put the state on disk in the place of what is there."""
    for path in root.iterdir():
        (_remove if path.is_dir() and not path.is_symlink() else os.unlink)(path)
    made: dict[Inode, Path] = {}

    def put(path: Path, inode: Inode) -> None:
        if inode in made and inode.kind != "d":
            os.link(made[inode], path, follow_symlinks=False)
            return
        made[inode] = path
        if inode.kind == "l":
            path.symlink_to(inode.data.decode())
        elif inode.kind == "f":
            path.write_bytes(state.data[inode])
            path.chmod(stat.S_IMODE(seen[inode].st_mode) if inode in seen else 0o600)
        else:
            path.mkdir(mode=0o700, exist_ok=True)
            for name, item in state.entries.get(inode, {}).items():
                put(path / name, item)
            path.chmod(stat.S_IMODE(seen[inode].st_mode) if inode in seen else 0o700)
        if inode in seen:
            status = seen[inode]
            os.chown(path, status.st_uid, status.st_gid, follow_symlinks=False)
            if inode.kind != "l":
                path.chmod(stat.S_IMODE(status.st_mode))
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)

    put(root, top)


def _remove(path: Path) -> None:
    """Delete a tree whose directories may be read-only."""
    shutil.rmtree(path, onerror=_open_up)


def _open_up(again: Callable[[str], object], name: str, _error: object) -> None:
    with contextlib.suppress(OSError):
        Path(name).parent.chmod(0o700)
    again(name)
