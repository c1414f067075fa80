"""SIGKILL at every step of apply, undo, redo and recover, in each recovery of it again, and at moments of chance.

Every step of one way to clone and stage is killed at. The other ways share the steps that a state on disk follows, and
take turns with the many events of single checks.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from envmedic.engine.clone.clone import probe_modes
from tests.faults import armed
from tests.faults.room import Room

_SEED = 20261122
KEEPING = "undo --keep-new"
_INSIDE = 8
"""SIGKILLs in the recoveries that follow a SIGKILL, one each, as long as there is something to recover."""
_FIRST_STEPS = 9
"""Every recovery has about as many steps; those further on are reached by `_RECOVERY_STEPS`."""
_RECOVERY_STEPS = 20
"""Steps of a recovery that are killed at one by one; some recoveries are over before."""
_RANDOM = 100
OFTEN = ("event check-", "event output", "event progress")
"""What the steps begin with that come many times."""
STATES = (
    ("apply", "fingerprinted"), ("apply", "after-repairing"), ("apply", "step-taken"), ("apply", "after-ready"),
    ("apply", "swapped"), ("apply", "after-exchanged"), ("apply", "before-done"), ("undo", "after-undoing"),
    ("undo", "swapped"), ("redo", "after-redoing"), ("redo", "swapped"),
)  # fmt: skip
"""Where an operation is killed whose recovery is then killed at each of its steps."""


class Mode(msgspec.Struct, frozen=True):
    """A way to stage and one to clone."""

    staging: str
    clone: str

    @property
    def options(self) -> tuple[str, ...]:
        """The options that ask for it."""
        return ("--staging", self.staging, "--clone", self.clone)


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One operation, and where it is killed."""

    number: int
    operation: str
    mode: Mode
    at: int | None = None
    """The step, from 0; None for a moment of chance."""
    name: str = ""
    """Only steps called so are counted by `at`."""
    moment: float = 0.0
    """Seconds after which it is killed."""
    state: tuple[str, str] | None = None
    """For a recovery: the operation before it, and the step where that was killed."""
    inside: tuple[int, ...] = ()
    """The steps at which the recoveries are killed, one after the other."""


class Survived(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it."""

    scenario: Scenario
    step: str
    """The step at which the operation died, or after which; empty where it had ended before."""
    kills: tuple[str, ...]
    """Every step at which something died, recoveries too."""
    side: str
    """``old`` or ``new``: the environment in the end."""
    orphans: int
    """Processes whose parent was killed and that ended by themselves."""
    failed: str = ""
    """What did not hold."""


@dataclass
class Sweep:
    """A room, and how far its environment is from the one that was found."""

    room: Room
    short: bool = False
    """Whether a few are enough."""
    by_renames: bool = False
    """Whether the file system can exchange nothing, so that for a moment there is no environment."""
    mode: Mode | None = None
    """Of the generation that is there; None where there is none."""
    seconds: dict[str, float] = field(default_factory=dict)
    """That each operation took here."""
    random: random.Random = field(default_factory=lambda: random.Random(_SEED))

    def __post_init__(self) -> None:
        self.room.program = lambda *arguments: armed.run(self.room, arguments).done

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Every way to clone here, with both ways to stage; the one that is tried in full comes first."""
        folder = self.room.root / "probe"
        folder.mkdir(exist_ok=True)
        works = [mode for mode, refused in probe_modes(self.room.prefix, folder).items() if not refused]
        folder.rmdir()
        ordered = sorted(works, key=("link", "reflink", "copy").index)[: 1 if self.short else None]
        return tuple(Mode(staging, clone) for clone in ordered for staging in ("namespace", "relocate"))

    def steps_of(self, operation: str, mode: Mode) -> tuple[str, ...]:
        """The steps of an operation that nobody disturbs."""
        self.prepare(operation, mode)
        started = time.monotonic()
        ended = armed.run(self.room, self.room.arguments(operation, *mode.options))
        assert ended.code == 0, ended.done.told()
        self.seconds[operation] = time.monotonic() - started
        self.clean()
        return ended.steps

    def prepare(self, operation: str, mode: Mode, state: tuple[str, str] | None = None) -> None:
        """Bring the environment to where `operation` can begin."""
        if state is not None:
            self.prepare(state[0], mode)
            ended = armed.run(self.room, self.room.arguments(state[0], *mode.options), at=0, name=state[1])
            assert ended.killed, f"no step {state}"
            return
        if self.mode != mode:
            self.clean()
        if self.room.work:
            self.clean()
        self.room.prepare(operation.split(maxsplit=1)[0], *mode.options)
        self.mode = mode
        if operation == KEEPING:
            self.room.begin_work()

    def clean(self) -> None:
        """As it was found, without a history."""
        if self.room.work:
            self.room.end_work()
        self.room.take_back()
        self.mode = None

    def scenarios(self) -> list[Scenario]:
        """All that is tried, in an order that needs few repairs in between."""
        found = []
        all_of_it = self._few() if self.short else self._all()
        for number, made in enumerate(all_of_it):
            inside = tuple(self.random.randrange(_FIRST_STEPS) for _ in range(_INSIDE // (2 if self.short else 1)))
            found.append(msgspec.structs.replace(made, number=number, inside=inside))
        return found

    def _all(self) -> Iterator[Scenario]:
        """What has fewer steps comes first, so that a part of it has every operation in every way to clone and stage."""
        steps = {
            (operation, staging): self.steps_of(operation, mode)  # the way to clone changes no step
            for staging, mode in {mode.staging: mode for mode in reversed(self.modes)}.items()
            for operation in ("apply", "undo", "redo", KEEPING)
        }
        for mode in self.modes:
            for operation in (KEEPING, "undo", "redo"):
                yield from self._of_operation(operation, mode, steps[operation, mode.staging])
        yield from self._recoveries()
        yield from self._moments()
        for mode in self.modes:
            yield from self._of_operation("apply", mode, steps["apply", mode.staging])

    def _of_operation(self, operation: str, mode: Mode, steps: tuple[str, ...]) -> Iterator[Scenario]:
        """Every step in the first way to clone and stage, the seldom ones in the others."""
        for at, step in enumerate(steps):
            if mode == self.modes[0]:
                yield Scenario(number=0, operation=operation, mode=mode, at=at)
            elif not step.startswith(OFTEN):  # by name: how often progress is told depends on the time
                yield Scenario(number=0, operation=operation, mode=mode, at=steps[:at].count(step), name=step)

    def _few(self) -> Iterator[Scenario]:
        """One of each operation, where something on disk is half done."""
        mode = self.modes[0]
        yield Scenario(number=0, operation="recover", mode=mode, at=2, state=("apply", "swapped"))
        yield Scenario(number=0, operation="redo", mode=mode, at=5)
        yield Scenario(number=0, operation="apply", mode=mode, at=60)

    def _recoveries(self) -> Iterator[Scenario]:
        for turn, state in enumerate(STATES):
            for at in range(turn % 2, _RECOVERY_STEPS, 2):
                mode = self.modes[(turn + at // 2) % len(self.modes)]
                yield Scenario(number=0, operation="recover", mode=mode, at=at, state=state)

    def _moments(self) -> Iterator[Scenario]:
        for number in range(_RANDOM):
            mode = self.modes[number * len(self.modes) // _RANDOM]
            operation = self.random.choice(("apply", "apply", "undo", "redo"))
            seconds = self.seconds[operation] * self.random.random()
            yield Scenario(number=0, operation=operation, mode=mode, moment=seconds)

    def survive(self, scenario: Scenario) -> Survived:
        """Kill, recover under further SIGKILLs, and see what is there."""
        kills: list[str] = []
        orphans, step, failed, side = 0, "", "", "?"
        try:
            self.prepare(scenario.operation, scenario.mode, scenario.state)
            kills += [f"{scenario.state[0]}: {scenario.state[1]}"] if scenario.state else []
            first = self._first(scenario)
            if first.killed:
                step, orphans = first.steps[-1] if first.steps else "start", first.orphans
                kills.append(f"{scenario.operation}: {step}")
            self._one_whole()  # before anything is recovered
            kills += self._recover(scenario.inside)
            side = self.room.settled()
            self._stay(side)
        except (AssertionError, OSError, ValueError) as error:
            failed = f"{type(error).__name__}: {error}"
        return Survived(
            scenario=scenario, step=step, kills=tuple(kills), side=side, orphans=orphans, failed=failed[:2000]
        )

    def _first(self, scenario: Scenario) -> armed.Ended:
        arguments = self.room.arguments(scenario.operation, *scenario.mode.options)
        if scenario.at is not None:
            return armed.run(self.room, arguments, at=scenario.at, name=scenario.name)
        return armed.run(self.room, arguments, after_s=scenario.moment)

    def _recover(self, inside: tuple[int, ...]) -> list[str]:
        kills = []
        for at in inside:
            ended = armed.run(self.room, self.room.command("recover"), at=at)
            assert ended.killed or ended.code == 0, ended.done.told()
            if ended.killed:
                kills.append(f"recover: {ended.steps[-1]}")
                self._one_whole()
        self.room.whole("recover")
        return kills

    def _one_whole(self) -> None:
        """Assert that one whole environment is in its place; or, between two renames, beside it."""
        if os.path.lexists(self.room.prefix):
            self.room.side(read=False)
            return
        assert self.by_renames, "there is no environment"
        aside = next(self.room.store.glob("*/displaced"), None)
        assert aside is not None, "there is no environment, and none that was moved aside"
        self.room.side(read=False, where=aside)

    def _stay(self, side: str) -> None:
        """Keep the generation for the next of the same kind, or forget what came to nothing."""
        if side == "old" and not any(self.room.store.glob("*/env")):
            self.clean()


def survive_all(sweep: Sweep, file: Path, planned: Path, share: tuple[int, int], most: int) -> Iterator[Survived]:
    """Try what `file` does not have yet, `share` of all, until `most` SIGKILLs; what came of it is added to `file`."""
    done = read(file)
    known = {item.scenario.number for item in done}
    count = sum(len(item.kills) for item in done)
    for scenario in _planned(sweep, planned):
        if count >= most:
            return
        if scenario.number % share[1] != share[0] or scenario.number in known:
            continue
        survived = sweep.survive(scenario)
        count += len(survived.kills)
        with file.open("ab") as written:
            written.write(msgspec.json.encode(survived) + b"\n")
        yield survived
        if survived.failed:  # what is there now is not known: the next needs what was found
            return


def _planned(sweep: Sweep, file: Path) -> list[Scenario]:
    if not file.exists():
        file.write_bytes(msgspec.json.encode(sweep.scenarios()))
    return msgspec.json.decode(file.read_bytes(), type=list[Scenario])


def read(file: Path) -> list[Survived]:
    """What a file holds of earlier runs."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Survived) for line in lines]
