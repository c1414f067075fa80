"""The process itself takes a turn at a step: no memory or descriptor is given to it, or it is told to end.

Commands that change nothing too: they answer as ever, or say that they cannot.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

from envmedic.engine.fs import trash
from envmedic.errors import ExitCode
from tests.faults import armed, reading
from tests.faults.cases import Case
from tests.faults.room import Room
from tests.faults.turns import Place, Turn, nothing, operations, take

_SPARE_BYTES = 1 << 20
_NONE = "no memory at all"
_SILENT = "nobody reads"
_SHORT = ("diagnose",)
_SHORT_STEP = f"{armed.FORK} 1"


def _limit(what: int, most: int) -> None:
    _soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most, hard))


def no_memory(_room: Room, spare: int) -> None:
    """Give this process, and each that it starts, no more memory than it has and `spare` bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + spare)


def no_descriptor(_room: Room) -> None:
    """Let nothing more be opened."""
    _limit(resource.RLIMIT_NOFILE, len(os.listdir("/proc/self/fd")) - 1)  # noqa: PTH208  # without the one that lists


def _signal(number: int) -> Callable[[Room], None]:
    return lambda _room: os.kill(os.getpid(), number)


def output_goes(_room: Room) -> None:
    """Let standard output and error lead into a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    for descriptor in (1, 2):
        os.dup2(writer, descriptor)
    os.close(writer)
    # those of a file would seek, which a process does not that has had a pipe from its beginning
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # for the life of the process
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115  # as above


TURNS = (
    Turn("no memory", partial(no_memory, spare=_SPARE_BYTES), nothing, heard=False),
    Turn(_NONE, partial(no_memory, spare=0), nothing, heard=False),
    Turn("no descriptor", no_descriptor, nothing),
    Turn("SIGHUP", _signal(signal.SIGHUP), nothing, asks=True),
    Turn("SIGTERM", _signal(signal.SIGTERM), nothing, asks=True),
    Turn(_SILENT, output_goes, nothing, heard=False),
)


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every turn at every point and at the beginning of every stage of each operation, and at each step of what reads."""
    room = Room.build(folder / "room")
    if not short:
        room.learn()
    place = Place(room, lambda: None)
    for operation in () if short else operations(room):
        for turn, step in product(TURNS, operation.steps):
            yield f"{turn.name}, {operation.name}: {step}", partial(take, place, turn, operation, step)
    room.take_back()
    for command in _SHORT if short else reading.READING:
        undisturbed = armed.run(room, reading.arguments(room, command))
        answer = reading.Answer.of(undisturbed.done)
        for turn, step in product(TURNS, (_SHORT_STEP,) if short else dict.fromkeys(undisturbed.steps)):
            if not (short and turn.asks):
                yield f"{turn.name}, {command}: {step}", partial(_read, room, turn, command, step, answer)


def _read(room: Room, turn: Turn, command: str, step: str, answer: reading.Answer) -> tuple[str, str]:
    """Let the turn come at `step` of a command that reads, and hear it."""
    ended = armed.run(room, reading.arguments(room, command), at=0, name=step, act=lambda: turn.happen(room))
    if turn.asks and (ended.code == ExitCode.INTERRUPTED or ended.code in {-signal.SIGHUP, -signal.SIGTERM}):
        said = "ended"  # as any program that has nothing to settle
    else:
        said = reading.judged(ended.done, answer, heard=turn.heard)
    assert room.side() == "old"
    left = [item for item in room.leaks() if not (item.startswith("temporary: ") and turn.name == _NONE)]
    assert left == []  # deleting a directory takes memory too
    trash.empty(room.temporary)
    room.temporary.mkdir()
    return "old", said
