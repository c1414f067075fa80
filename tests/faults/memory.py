"""Too little memory, for real: a control group with a limit, in which the kernel itself chooses whom it kills."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from envmedic.engine.fs import trash
from envmedic.errors import ExitCode
from tests.cli.support import LIMIT_S, Done
from tests.faults import reading
from tests.faults.cases import Case, skipping
from tests.faults.room import Room, Skipped, no_children, told

_ROOT = Path("/sys/fs/cgroup")
_JOIN = 'echo $$ > "$0" && exec "$@"'
_PERCENT = (99, 97, 95, 90, 80, 70, 60, 50, 40, 30, 20, 10)
"""Of the memory that a command takes."""
_CHANGING = ("apply", "undo", "redo")
_ENOUGH = 1 << 34
_KILLED = -9


@dataclass(frozen=True)
class Version:
    """Names in the memory controller of one version of control groups."""

    limit: str
    peak: str
    events: str
    """The file that counts those that were killed."""


_FIRST = Version("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control")
_SECOND = Version("memory.max", "memory.peak", "memory.events")


@dataclass(frozen=True)
class Group:
    """A control group of the harness's own."""

    path: Path
    version: Version

    def allow(self, size: int) -> None:
        """Give the group that many bytes, and forget what it took."""
        (self.path / self.version.limit).write_text(f"{size}\n")

    def reset(self) -> None:
        """Forget the most that it took; version 2 forgets only with a new group."""
        if self.version is _FIRST:
            (self.path / self.version.peak).write_text("0\n")

    @property
    def peak(self) -> int:
        """The most that it took, in bytes."""
        return int((self.path / self.version.peak).read_text())

    @property
    def killed(self) -> int:
        """How many processes the kernel has killed in it."""
        lines = (line.split() for line in (self.path / self.version.events).read_text().splitlines())
        return next(int(words[1]) for words in lines if words[0] == "oom_kill")


@contextmanager
def group() -> Iterator[Group]:
    """A control group below that of this process. Raises Skipped with the reason where none can be had."""
    version, parent = _controller()
    path = parent / f"envmedic-faults-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        raise Skipped(f"no control group can be made: {error.strerror}") from error
    try:
        if not (path / version.limit).exists():
            raise Skipped("control groups here have no memory controller to give on")
        yield Group(path, version)
    finally:
        _remove(path)


def _controller() -> tuple[Version, Path]:
    """The version in use, and where this process may make a group."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()]
    for _, controllers, own in lines:
        if "memory" in controllers.split(","):
            return _FIRST, _ROOT / "memory" / own.lstrip("/")
    if not (_ROOT / "cgroup.controllers").exists():
        raise Skipped("there are no control groups for memory")
    return _SECOND, _ROOT  # a group that has processes gives no controller on; the topmost does


def _remove(path: Path) -> None:
    """Remove the group once the last of its processes has been reaped."""
    deadline = time.monotonic() + LIMIT_S
    while path.exists():
        with contextlib.suppress(OSError):  # busy
            path.rmdir()
        assert time.monotonic() < deadline, f"{path} has processes: {(path / 'cgroup.procs').read_text().split()}"
        time.sleep(0.01)


@dataclass
class Cell:
    """A room whose commands run in the group."""

    room: Room
    group: Group
    answers: dict[str, reading.Answer] = field(default_factory=dict)

    def run(self, command: str, size: int) -> Done:
        """Run a command with that much memory, all its processes together."""
        self.group.allow(size)
        user = self.room.user
        inside = replace(user, program=("/bin/sh", "-c", _JOIN, str(self.group.path / "cgroup.procs"), *user.program))
        reads = command in reading.READING
        done = inside.envmedic(*(reading.arguments if reads else Room.arguments)(self.room, command))
        no_children(f"envmedic {command} with {size >> 20} MB")
        return done

    def taken(self, command: str) -> int:
        """What the command takes where there is enough, in bytes."""
        if command in _CHANGING:
            self.room.prepare(command)
        self.group.reset()
        done = self.run(command, _ENOUGH)
        if command in reading.READING:
            self.answers[command] = reading.Answer.of(done)
        else:
            assert done.code == 0, done.told()
        return self.group.peak

    def reads(self, command: str, size: int) -> tuple[str, str]:
        """The command is killed, answers as ever, or says that it cannot."""
        before = self.group.killed
        done = self.run(command, size)
        said = "it was killed" if done.code == _KILLED else reading.judged(done, self.answers[command])
        assert self.room.side() == "old"
        if done.code == _KILLED:  # a plan works there, and whoever is killed clears nothing away
            trash.empty(self.room.temporary)
            self.room.temporary.mkdir()
        assert self.room.leaks() == []
        return "old", f"{said}; killed by the kernel: {self.group.killed - before}"

    def changes(self, command: str, size: int) -> tuple[str, str]:
        """The environment is the old or the new one, whoever was killed."""
        self.room.prepare(command)
        before = self.group.killed
        done = self.run(command, size)
        killed = self.group.killed - before
        said = self._said(done)
        self.room.side()
        self.room.whole("recover")
        side = self.room.settled()
        assert done.code != 0 or side == ("old" if command == "undo" else "new"), done.told()
        return side, f"{said}; killed by the kernel: {killed}"

    def _said(self, done: Done) -> str:
        if done.code == _KILLED:
            return "it was killed"
        if done.code == 0:
            return "done all the same"
        assert done.code in {ExitCode.PROBLEM, ExitCode.CHECKS, ExitCode.BUSY}, done.told()
        return told(done, done.code)


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every command in ever less memory than it takes."""
    try:
        with group() as made:
            room = Room.build(folder / "room")
            if not short:
                room.learn()
            cell = Cell(room, made)
            for command in ("diagnose",) if short else (*reading.READING, *_CHANGING):
                work = cell.changes if command in _CHANGING else cell.reads
                size = cell.taken(command)
                for percent in (50,) if short else _PERCENT:
                    yield f"{command}, {percent} % of its memory", partial(work, command, size * percent // 100)
    except Skipped as reason:
        yield "a control group with little memory", skipping(reason)
