"""The process itself takes a turn at a step: no memory or descriptor is given to it, or it is told to end."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

from tests.faults.cases import Case
from tests.faults.room import Room
from tests.faults.turns import SLICE, Operation, Place, Turn, nothing, operations, take

_SPARE_BYTES = 1 << 20


def _limit(what: int, most: int) -> None:
    _soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most, hard))


def no_memory(_room: Room) -> None:
    """Give this process, and each that it starts, a megabyte more than it has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + _SPARE_BYTES)


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


TURNS = (
    Turn("no memory", no_memory, nothing, heard=False),
    Turn("no descriptor", no_descriptor, nothing),
    Turn("SIGHUP", _signal(signal.SIGHUP), nothing, asks=True),
    Turn("SIGTERM", _signal(signal.SIGTERM), nothing, asks=True),
    Turn("nobody reads", output_goes, nothing, heard=False),
)


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every turn at every point and at the beginning of every stage of each operation."""
    room = Room.build(folder / "room")
    if not short:
        room.learn()
    place = Place(room, lambda: None)
    for operation in (Operation("apply", SLICE, "new"),) if short else operations(room):
        for turn, step in product(TURNS[-2:] if short else TURNS, operation.steps):
            yield f"{turn.name}, {operation.name}: {step}", partial(take, place, turn, operation, step)
