"""SIGKILL where a file system cannot exchange two directories: three renames take the place of one call.

Between the first two of them there is no environment in its place, and the one that was is beside it. On FUSE (bindfs).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.faults.cases import Case, skipping
from tests.faults.filesystems import fuse
from tests.faults.room import Room, Skipped
from tests.faults.sigkill import OFTEN, STATES, Scenario, Sweep

_BETWEEN = ("prefix-displaced", "prefix-replaced")
"""What is reached by renames alone."""
_RECOVERY_STEPS = 12
_INSIDE = (0, 1, 2, 3, 5, 8)
_OPERATIONS = ("apply", "undo", "redo")


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every step of one way to clone and stage, the renames of the others, and recoveries from between them."""
    try:
        with ExitStack() as stack:
            where = stack.enter_context(fuse(folder))
            sweep = Sweep(Room.build(where / "room"), short=short, by_renames=True)
            if not short:
                sweep.room.learn()
            for scenario in _few(sweep) if short else _all(sweep):
                yield _name(scenario), partial(_survive, sweep, scenario)
    except Skipped as reason:
        yield "FUSE (bindfs)", skipping(reason)


def _few(sweep: Sweep) -> Iterator[Scenario]:
    mode = sweep.modes[0]
    yield Scenario(number=0, operation="apply", mode=mode, at=0, name=_BETWEEN[0], inside=_INSIDE[1:3])


def _all(sweep: Sweep) -> Iterator[Scenario]:
    first, *others = sweep.modes
    for operation in _OPERATIONS:
        steps = sweep.steps_of(operation, first)
        assert {*_BETWEEN} <= {*steps}, f"{operation} took no renames"
        for step in dict.fromkeys(step for step in steps if not step.startswith(OFTEN)):
            yield Scenario(number=0, operation=operation, mode=first, at=0, name=step, inside=_INSIDE)
    for mode, operation, step in (
        (mode, operation, step) for mode in others for operation in _OPERATIONS for step in _BETWEEN
    ):
        yield Scenario(number=0, operation=operation, mode=mode, at=0, name=step, inside=_INSIDE)
    between = tuple((operation, step) for operation in _OPERATIONS for step in _BETWEEN)
    for turn, state in enumerate((*between, *STATES)):
        for at in range(_RECOVERY_STEPS) if state in between else range(turn % 3, _RECOVERY_STEPS, 3):
            yield Scenario(number=0, operation="recover", mode=first, at=at, state=state, inside=_INSIDE[:3])


def _name(scenario: Scenario) -> str:
    mode = f"{scenario.mode.staging}, {scenario.mode.clone}"
    if scenario.state is not None:
        return f"recover of {scenario.state[0]} at {scenario.state[1]}, {mode}: step {scenario.at}"
    return f"{scenario.operation}, {mode}: {scenario.name}"


def _survive(sweep: Sweep, scenario: Scenario) -> tuple[str, str]:
    survived = sweep.survive(scenario)
    assert not survived.failed, f"{survived.kills} left {survived.side}: {survived.failed}"
    return survived.side, f"{len(survived.kills)} SIGKILLs: {', '.join(survived.kills)}"
