"""The surroundings take a turn at a step of a repair, an undo or a redo: what the disk, the paths and the rights do.

Each turn takes place inside the process of envmedic, at a chosen step, so that it is the same every time.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

from envmedic.errors import ExitCode
from tests.cli.support import Done
from tests.faults import armed, disks
from tests.faults.cases import Case, skipping
from tests.faults.room import Room, Skipped, told

_SHUTDOWN = 0x8004587D
"""``EXT4_IOC_SHUTDOWN`` of linux/fs/ext4, ``XFS_IOC_GOINGDOWN`` of XFS."""
_WITHOUT_LOG = struct.pack("I", 2)
"""Nothing more reaches the disk, the journal neither: what a power cut does."""
_GET_FLAGS, _SET_FLAGS, _IMMUTABLE = 0x80086601, 0x40086602, 0x10
_MEBIBYTE = 1 << 20
_SMALL_MB = 160
_INODES = 7000
_TOLD_BY_ERROR = frozenset({1, 2, 4, 6})
RECOVERED = (("apply", "step-taken"), ("apply", "swapped"), ("undo", "after-undoing"), ("redo", "after-redoing"))
"""Operations that are killed, and where, for the recoveries: one that drops a clone and three that go on."""
SLICE = ("created", "event stage-started steps")
"""Steps that a short run is content with, after which nothing but the old environment can be there."""
_SHORT = ("disk full",)


@dataclass(frozen=True)
class Turn:
    """Something that happens to the surroundings, and how it is made good."""

    name: str
    happen: Callable[[Room], None]
    mend: Callable[[Room], None]
    asks: bool = False
    """Whether it asks envmedic to end."""
    heard: bool = True
    """Whether envmedic can say what became of it."""


def fill(room: Room) -> None:
    """Leave no byte on the environment's file system."""
    with (room.root / "filler").open("wb", buffering=0) as file:
        for size in (_MEBIBYTE, 4096, 1):
            with contextlib.suppress(OSError):  # that is the end of it
                while True:
                    file.write(bytes(size))


def use_up_inodes(room: Room) -> None:
    """Leave no inode on the environment's file system."""
    folder = room.root / "filler"
    folder.mkdir()
    with contextlib.suppress(OSError):  # that is the end of it
        for number in range(10 * _INODES):
            (folder / str(number)).touch()


def empty(room: Room) -> None:
    """Give the room back."""
    disks.run("rm", "-rf", room.root / "filler")


def abort(room: Room) -> None:
    """Let the file system turn read-only, as ext4 does by itself when its disk fails."""
    disks.run("mount", "-o", "remount,abort", room.root.parent)


def cut_power(room: Room) -> None:
    """Let nothing more reach the disk, and end this process."""
    descriptor = os.open(room.root.parent, os.O_RDONLY)
    fcntl.ioctl(descriptor, _SHUTDOWN, _WITHOUT_LOG)
    os.kill(os.getpid(), signal.SIGKILL)


def freeze(room: Room) -> None:
    """Let nobody, not even root, change the directories that a repair has to change."""
    for path in _directories(room):
        _set_immutable(path, on=True)


def thaw(room: Room) -> None:
    """Give the rights back."""
    for path in _directories(room):
        _set_immutable(path, on=False)


def _directories(room: Room) -> list[Path]:
    store = [path for path in room.store.glob("*") if path.is_dir()] if room.store.is_dir() else []
    return [path for path in (room.prefix.parent, room.store, *store) if path.is_dir()]


def _set_immutable(path: Path, *, on: bool) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        flags = ctypes.c_long.from_buffer(bytearray(fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8)))).value
        wanted = flags | _IMMUTABLE if on else flags & ~_IMMUTABLE
        fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("l", wanted))
    except OSError as error:
        if error.errno in {errno.ENOTTY, errno.EOPNOTSUPP, errno.EPERM}:
            raise Skipped(f"no immutable directories here: {error.strerror}") from error
        raise
    finally:
        os.close(descriptor)


def move_parent(room: Room) -> None:
    """Somebody renames the directory that holds the environment and its store."""
    room.prefix.parent.rename(room.root / "moved")


def move_parent_back(room: Room) -> None:
    """They rename it back."""
    if (room.root / "moved").exists():
        if room.prefix.parent.exists():
            disks.run("rm", "-rf", room.prefix.parent)
        (room.root / "moved").rename(room.prefix.parent)


def put_link(room: Room) -> None:
    """Somebody moves the environment aside and leaves a symbolic link to it."""
    room.prefix.rename(room.root / "aside")
    room.prefix.symlink_to(room.root / "aside")


def take_link_away(room: Room) -> None:
    """They put it back in its place."""
    if room.prefix.is_symlink():
        room.prefix.unlink()
        (room.root / "aside").rename(room.prefix)


def nothing(_room: Room) -> None:
    """What needs no mending."""


TURNS = {
    "disk full": Turn("disk full", fill, empty),
    "inodes full": Turn("inodes full", use_up_inodes, empty),
    "immutable": Turn("immutable", freeze, thaw),
    "parent moved": Turn("parent moved", move_parent, move_parent_back),
    "prefix a link": Turn("prefix a link", put_link, take_link_away),
}
ON_A_DISK = {
    "read-only": Turn("read-only", abort, nothing),
    "power cut": Turn("power cut", cut_power, nothing),
}


@dataclass
class Place:
    """A file system with a room on it."""

    room: Room
    remount: Callable[[], None]
    """What follows a turn that only a new mount ends."""


@contextmanager
def in_memory(folder: Path, *, learn: bool) -> Iterator[Place]:
    """On a small file system in memory; the user's caches lie elsewhere."""
    with disks.memory(folder, _SMALL_MB, inodes=_INODES) as where:
        room = Room.build(where / "room", home=folder / "home")
        if learn:
            room.learn()
        yield Place(room, lambda: None)


@contextmanager
def on_a_disk(folder: Path, *, learn: bool) -> Iterator[Place]:
    """On ext4 with a journal, in a file."""
    with disks.image(folder, "ext4", 600) as where:
        room = Room.build(where / "room", home=folder / "home")
        if learn:
            room.learn()

        def remount() -> None:
            disks.run("umount", where)
            disks.run("mount", "-o", "loop", folder / "ext4.img", where)
            room.remount()

        os.sync()
        yield Place(room, remount)


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every turn at every point and at the beginning of every stage of each operation."""
    everything = ((in_memory, TURNS), (on_a_disk, ON_A_DISK))
    for maker, turns in ((in_memory, {name: TURNS[name] for name in _SHORT}),) if short else everything:
        try:
            with ExitStack() as stack:
                place = stack.enter_context(maker(folder, learn=not short))
                for operation in (_SLICE,) if short else operations(place.room):
                    for turn, step in product(turns.values(), operation.steps):
                        name = f"{turn.name}, {operation.name}: {step}"
                        yield name, partial(take, place, turn, operation, step)
        except Skipped as reason:  # noqa: PERF203  # two of them
            yield from ((name, skipping(reason)) for name in turns)


@dataclass(frozen=True)
class Operation:
    """What the surroundings disturb."""

    command: str
    steps: tuple[str, ...]
    """Where they do."""
    side: str
    """The environment that it leaves undisturbed."""
    state: tuple[str, str] | None = None
    """For a recovery: the operation before it, and the step where that was killed."""

    @property
    def name(self) -> str:
        """In words."""
        return self.command if self.state is None else f"{self.command} of {self.state[0]} at {self.state[1]}"

    def left(self, done: Done) -> str:
        """The environment that is there by what the command said, which came to a good end."""
        if self.state is None or not done.out:  # nobody could hear it
            return self.side
        # a recovery puts the old one back where the new one cannot be proven to work
        settled = done.document["settled"]
        return "old" if any(record["failure"] is not None for record in settled) else self.side

    def prepare(self, room: Room) -> None:
        """Bring the environment to where it can begin."""
        if self.state is None:
            room.prepare(self.command)
            return
        room.prepare(self.state[0])
        ended = armed.run(room, room.arguments(self.state[0]), at=0, name=self.state[1])
        assert ended.killed, f"no step {self.state}"


_SLICE = Operation("apply", SLICE, "new")


def operations(room: Room) -> Iterator[Operation]:
    for state in (None, *RECOVERED):
        for command in ("apply", "undo", "redo") if state is None else ("recover",):
            operation = Operation(command, (), "", state)
            operation.prepare(room)
            ended = armed.run(room, room.arguments(command))
            assert ended.code == 0, ended.done.told()
            yield replace(operation, steps=tuple(_telling(ended.steps)), side=room.settled())


def _telling(steps: Iterable[str]) -> Iterator[str]:
    """Points, where something on disk hangs on it, and the beginnings of stages, once each."""
    for step in dict.fromkeys(steps):
        if not step.startswith(("event ", f"{armed.FORK} ")) or step.startswith("event stage-started"):
            yield step


def take(place: Place, turn: Turn, operation: Operation, step: str) -> tuple[str, str]:
    """Let the turn come at `step`, mend it, recover, and see that the environment is whole."""
    room = place.room
    operation.prepare(room)
    ended = armed.run(room, room.arguments(operation.command), at=0, name=step, act=lambda: turn.happen(room))
    turn.mend(room)
    place.remount()
    said = _said(ended, turn)
    room.side()
    room.whole("recover")
    side = room.settled()
    if ended.code == 0:
        assert side == operation.left(ended.done), f"exit 0, but {side}: {ended.done.told()}"
    return side, said


def _said(ended: armed.Ended, turn: Turn) -> str:
    """What the command told of the turn, if it came to an end."""
    if ended.killed:
        return "killed"
    if turn.asks and ended.code == ExitCode.INTERRUPTED:
        return "interrupted"
    if not turn.heard and ended.code != ExitCode.INTERNAL:
        return f"exit code {ended.code}"
    assert ended.code in {0, *_TOLD_BY_ERROR}, ended.done.told()
    return "finished" if ended.code == 0 else told(ended.done, ended.code)
