"""Clocks that jump by ten years, either way, in the middle of a repair."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.cli.support import LIMIT_S, Done, lines_of
from tests.faults.cases import Case
from tests.faults.libc import Shim, skip
from tests.faults.room import Room, Skipped

_TEN_YEARS = 10 * 366 * 86400
_STAGES = ("preflight", "clone", "steps", "verify", "smoke")


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """A jump at the beginning of a stage, the way back and forth under the new time and under the old one."""
    try:
        shim = Shim.build(folder)
    except Skipped as reason:
        why = reason
        yield "clocks jump", lambda: skip(why)
        return
    room = Room.build(folder / "room")
    room.learn()
    for stage in ("steps",) if short else _STAGES:
        for seconds in (-_TEN_YEARS,) if short else (_TEN_YEARS, -_TEN_YEARS):
            years = "forward" if seconds > 0 else "back"
            yield (
                f"ten years {years} when {stage} begins",
                lambda stage=stage, seconds=seconds: _jump(room, shim, stage, seconds),  # type: ignore[misc]
            )


def _jump(room: Room, shim: Shim, stage: str, seconds: int) -> tuple[str, str]:
    shim.reset()
    known, user = room.user, room.user.having(**shim.variables())
    room.user = user
    try:
        with user.running(*room.repairing("--events")) as process:
            told = []
            for line in lines_of(process.stderr):
                told.append(line)
                if json.loads(line)["data"] == {"type": "stage-started", "stage": stage}:
                    shim.advance(seconds)
            out, rest = process.communicate(timeout=LIMIT_S)
        done = Done(process.returncode, out.decode(), "".join(told) + rest.decode())
        assert done.code == 0, done.told()
        assert room.settled(start=False) == "new"
        _travel(room, "undo", "old")
    finally:
        shim.reset()
        room.user = known
    _travel(room, "redo", "new")
    room.take_back()
    return "new", "repaired all the same"


def _travel(room: Room, operation: str, side: str) -> None:
    done = room.run(*room.command(operation))
    assert done.code == 0, done.told()
    assert room.settled() == side
