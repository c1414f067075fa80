"""Clocks that jump by ten years, either way, in the middle of a repair."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.cli.support import LIMIT_S, Done, lines_of
from tests.faults.cases import Case
from tests.faults.room import Room
from tests.faults.shim import Shim, with_shim

_TEN_YEARS = 10 * 366 * 86400
_STAGES = ("preflight", "clone", "steps", "verify", "smoke")


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """A jump at the beginning of a stage, the way back and forth under the new time and under the old one."""
    return with_shim(folder, "clocks jump", partial(_cases, folder, short=short))


def _cases(folder: Path, shim: Shim, *, short: bool) -> Iterator[Case]:
    room = Room.build(folder / "room")
    if not short:
        room.learn()
    for stage in ("steps",) if short else _STAGES:
        for seconds in (-_TEN_YEARS,) if short else (_TEN_YEARS, -_TEN_YEARS):
            years = "forward" if seconds > 0 else "back"
            yield f"ten years {years} when {stage} begins", partial(_jump, room, shim, stage, seconds)


def _jump(room: Room, shim: Shim, stage: str, seconds: int) -> tuple[str, str]:
    """Repair and undo while the clock is wrong, redo and undo once it is right again."""
    shim.reset()
    known, room.user = room.user, room.user.having(**shim.variables())
    try:
        done = _repaired(room, shim, stage, seconds)
        assert done.code == 0, done.told()
        if room.new is None:
            room.new = room.now()
        assert room.settled(start=False) == "new"
        _travel(room, "undo", "old")
    finally:
        shim.reset()
        room.user = known
    _travel(room, "redo", "new")
    room.take_back()
    return "new", "repaired all the same"


def _repaired(room: Room, shim: Shim, stage: str, seconds: int) -> Done:
    with room.user.running(*room.repairing("--events")) as process:
        told = []
        for line in lines_of(process.stderr):
            told.append(line)
            if json.loads(line)["data"] == {"type": "stage-started", "stage": stage}:
                shim.advance(seconds)
        out, rest = process.communicate(timeout=LIMIT_S)
    return Done(process.returncode, out.decode(), "".join(told) + rest.decode())


def _travel(room: Room, operation: str, side: str) -> None:
    room.whole(operation)
    assert room.settled() == side
