"""Processes that envmedic starts and that die under it, as when the kernel has no memory left and kills one.

Every process that a command has: a fork that reads compiled modules, the environment's
interpreter, staging helpers, installers and checks. Each is killed as it begins, in the middle, before and in the
middle of the last that it writes, and as it ends, when all is said but its exit status.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from envmedic.errors import ExitCode
from tests.cli.support import Done
from tests.faults import reading
from tests.faults.cases import Case
from tests.faults.room import Room, Skipped, told
from tests.faults.shim import Life, Shim, with_shim

_NOBODY = "nobody"
_ITSELF = "0"
_CHANGING = ("apply", "undo", "redo")
_SHOWN = 60


@dataclass(frozen=True)
class Moment:
    """When a process dies."""

    name: str
    at: int
    """Before which of its calls, from 1; 0 as it begins, -1 as it ends."""
    half: bool = False
    """Whether half of that call, a write, is done."""


@dataclass
class Household:
    """A room, the library that kills, and what each command comes to undisturbed."""

    room: Room
    shim: Shim
    answers: dict[str, reading.Answer] = field(default_factory=dict)

    def run(self, command: str, process: str, moment: Moment) -> Done:
        """Run a command that loses a process; 0 is itself."""
        self.shim.reset()
        user = self.room.user.having(**self.shim.killing(process, moment.at, half=moment.half))
        if command in reading.READING:
            return user.envmedic(*reading.arguments(self.room, command))
        return user.envmedic(*self.room.arguments(command))

    def lives(self, command: str) -> list[Life]:
        """The processes of a command that loses none, itself apart."""
        if command in _CHANGING:
            self.room.prepare(command)
        done = self.run(command, _NOBODY, Moment("", 0))
        if command in _CHANGING:
            assert done.code == 0, done.told()
        else:
            self.answers[command] = reading.Answer.of(done)
        return [life for life in self.shim.lives if life.name != _ITSELF]

    def reads(self, command: str, process: str, moment: Moment) -> tuple[str, str]:
        """The command does itself what the process was to do, or says that it cannot."""
        done = self.run(command, process, moment)
        said = reading.judged(done, self.answers[command])
        died = self._died()
        assert self.room.side() == "old"
        assert self.room.leaks() == []
        return "old", f"{said}; {died}"

    def changes(self, command: str, process: str, moment: Moment) -> tuple[str, str]:
        """The environment is the old or the new one, and the command has said which."""
        self.room.prepare(command)
        done = self.run(command, process, moment)
        said = "done all the same" if done.code == 0 else told(done, done.code)
        assert done.code == 0 or self.shim.killed, done.told()
        died = self._died()
        assert done.code in {0, ExitCode.PROBLEM, ExitCode.CHECKS, ExitCode.BUSY}, done.told()
        self.room.side()
        self.room.whole("recover")
        side = self.room.settled()
        assert done.code != 0 or side == ("old" if command == "undo" else "new"), done.told()
        return side, f"{said}; {died}"

    def _died(self) -> str:
        """What was killed. Raises Skipped where nothing was: what runs beside something else counts differently each time."""
        died = self.shim.killed
        if not died:
            raise Skipped("fewer processes, or calls of that one, this time")
        return " ".join(died[0].split())[-_SHOWN:]


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every process of every command, killed at each moment; of repairs at the beginning and one other."""
    return with_shim(folder, "processes that die", partial(_cases, folder, short=short))


def _cases(folder: Path, shim: Shim, *, short: bool) -> Iterator[Case]:
    room = Room.build(folder / "room")
    if not short:
        room.learn()
    household = Household(room, shim)
    for command in ("diagnose",) if short else (*reading.READING, "undo", "redo", "apply"):
        work = household.changes if command in _CHANGING else household.reads
        for number, life in enumerate(household.lives(command)):
            chosen = _few(life, number) if short or command == "apply" else moments(life)
            for moment in chosen[-1:] if short else chosen:
                name = f"{command}: {life.name}, {moment.name}"
                yield name, partial(work, command, life.name, moment)


def moments(life: Life) -> list[Moment]:
    """Of a process that opens and writes that much."""
    found = [Moment("as it begins", 0)]
    if life.calls is None:
        return found  # another program by then
    if life.calls > 1:
        found.append(Moment("in the middle", (life.calls + 1) // 2))
    if life.last_write:
        found.append(Moment("before its last write", life.last_write))
        found.append(Moment("in the middle of its last write", life.last_write, half=True))
    return [*found, Moment("as it ends", -1)]


def _few(life: Life, turn: int) -> list[Moment]:
    """The beginning, and one of the others in turn."""
    first, *others = moments(life)
    return [first, *([others[turn % len(others)]] if others else [])]
