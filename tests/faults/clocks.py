"""Clocks that jump by ten years, either way, in the middle of a repair and between two."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.cli.support import LIMIT_S, Done, lines_of
from tests.envs.nms_cuda.case import BROKEN
from tests.faults.cases import Case
from tests.faults.room import Room
from tests.faults.shim import Shim, with_shim
from tests.support.venvs import uv

_TEN_YEARS = 10 * 366 * 86400
_JUMP = -2
"""What a call is made to do in `shim.c`."""
_STAGES = ("preflight", "clone", "steps", "verify", "smoke")


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """A jump at the beginning of a stage, the way back and forth under the new time and under the old one."""
    return with_shim(folder, "clocks jump", partial(_cases, folder, short=short))


def _cases(folder: Path, shim: Shim, *, short: bool) -> Iterator[Case]:
    room = Room.build(folder / "room")
    if not short:
        room.learn()
    for stage in () if short else _STAGES:
        for seconds in (_TEN_YEARS, -_TEN_YEARS):
            years = "forward" if seconds > 0 else "back"
            yield f"ten years {years} when {stage} begins", partial(_jump, room, shim, stage, seconds)
    yield "ten years forward in the middle of a step that has a time limit", partial(_jump_in_a_step, room, shim)
    yield "a second repair, ten years before the first", partial(_twice, room, shim)


def _jump_in_a_step(room: Room, shim: Shim) -> tuple[str, str]:
    """The clock jumps when the installer makes its first directory: no more time has gone by than before."""
    shim.reset()
    jump = shim.variables("mkdir", 0, _JUMP, room.prefix / "lib")
    done = room.user.having(**jump).envmedic(*room.repairing("--timeout", "600"))
    assert len(shim.faults) == 1, "no directory was made, so no clock jumped"
    assert done.code == 0, done.told()
    if room.new is None:
        room.new = room.now()
    assert room.settled() == "new"
    room.take_back()
    return "new", "repaired all the same"


def _twice(room: Room, shim: Shim) -> tuple[str, str]:
    """Undo and redo follow from which tree a repair began, and not from when."""
    room.whole("apply")
    _break_again(room)
    room.remember()
    room.new = None
    room.plan_again()
    shim.reset()
    shim.advance(-_TEN_YEARS)
    known, room.user = room.user, room.user.having(**shim.variables())
    try:
        room.whole("apply")
        room.new = room.now()
        first, second = sorted(room.generations(), key=lambda item: item["parent"] is not None)
        assert second["transaction"] < first["transaction"], "the clock did not go back"
        assert (second["parent"], second["live"]) == (first["transaction"], True)
        for operation, side in (("undo", "old"), ("redo", "new"), ("undo", "old")):
            room.whole(operation)
            assert room.side() == side
    finally:
        shim.reset()
        room.user = known
    room.forget()
    return "old", "undone and redone in the order of the repairs"


def _break_again(room: Room) -> None:
    wheel = next(room.case.wheels.glob(f"torchvision-{BROKEN}-*.whl"))
    command = [uv(), "pip", "install", "--quiet", "--no-deps", "--link-mode=copy", "--python", str(room.case.python)]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True, env=room.user.environment())


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
    with room.user.running(*room.repairing("--events")) as process, ThreadPoolExecutor(1) as pool:
        assert process.stdout is not None
        said = pool.submit(process.stdout.read)  # a record is longer than what a pipe holds
        told = []
        for line in lines_of(process.stderr):
            told.append(line)
            if json.loads(line)["data"] == {"type": "stage-started", "stage": stage}:
                shim.advance(seconds)
        code = process.wait(timeout=LIMIT_S)
    return Done(code, said.result().decode(), "".join(told))


def _travel(room: Room, operation: str, side: str) -> None:
    room.whole(operation)
    assert room.settled() == side
