"""The state of a repair: plain values, made from its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from envmedic.errors import EnvmedicError, InternalError
from envmedic.model.checks import Outcome, Phase
from envmedic.model.conda import CondaChange
from envmedic.model.events import (
    CheckFinished,
    Event,
    EventData,
    Notice,
    Progress,
    RoundStarted,
    Stage,
    StageFinished,
    StageStarted,
    StateChanged,
    StepFinished,
    StepStarted,
    TransactionStarted,
)
from envmedic.model.lock import Lock
from envmedic.model.plan import Install, Plan
from envmedic.model.ports import Exchange
from envmedic.model.record import Record

KEPT_LINES: Final = 200_000
"""Older lines of the log go: the transaction's own file holds all of it."""
Part = Literal[
    "probe", "resolve", "solve", "preflight", "fetch", "fingerprint", "clone", "reproduce", "steps", "verify", "ask",
    "compare", "exchange", "smoke", "witness", "prune", "other",
]  # fmt: skip
"""The displayed stages: those of events, and others, such as a question."""
_ROUND: Final[tuple[Part, ...]] = ("steps", "verify")
_END: Final[tuple[Part, ...]] = ("ask", "compare", "exchange", "smoke")
_OUTSIDE: Final = frozenset({"make", "undo", "redo", "recover"})
_NEEDS_NOBODY: Final = frozenset({"exchanged", "done", "undone", "aborted"})
"""Journal states in which it is too late to stop."""


class RepairLog:
    """A log that only grows, shared by all its viewers. The oldest lines go when there are too many."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._gone = 0

    @property
    def total(self) -> int:
        """The number of lines ever added."""
        return self._gone + len(self._lines)

    def add(self, lines: Iterable[str]) -> None:
        """Append lines."""
        self._lines += lines
        gone = max(len(self._lines) - KEPT_LINES, 0)
        del self._lines[:gone]
        self._gone += gone

    def since(self, seen: int) -> list[str]:
        """The lines after the first `seen`, as far as they are kept."""
        return self._lines[max(seen - self._gone, 0) :]


class StageRow(msgspec.Struct, frozen=True):
    """A part of the repair that has begun."""

    part: Part
    began: float
    """Seconds since the epoch, as in events."""
    round: int = 1
    seconds: float | None = None
    """How long it took; None while it runs."""
    ok: bool = True
    progress: Progress | None = None
    """Its last report."""
    outcomes: int = 0
    """Checks that ended in it."""
    note: str = ""
    """The current work, or the reason of another round."""

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.seconds is None


class CheckRow(msgspec.Struct, frozen=True):
    """One check on one device."""

    before: Outcome | None = None
    after: Outcome | None = None
    smoke: Outcome | None = None

    @property
    def last(self) -> Outcome:
        """Its newest outcome."""
        found = self.smoke or self.after or self.before
        if found is None:
            raise InternalError("A row of checks without an outcome")
        return found


Asked = Exchange | Plan
"""A question that waits for an answer: about the exchange, or about the plan of a further round."""


class Repair(msgspec.Struct, frozen=True):
    """One repair, running or ended."""

    prefix: str
    plan: Plan
    line: str
    """The command line that does the same."""
    began: float
    asks: bool = True
    """Whether it asks before the exchange."""
    stages: tuple[StageRow, ...] = ()
    checks: dict[tuple[str, str | None], CheckRow] = {}
    rounds: tuple[str, ...] = ()
    """Reasons of the further rounds."""
    warnings: tuple[str, ...] = ()
    """Warnings, in the order of their arrival."""
    directory: str = ""
    """Directory of the transaction, empty before it has one."""
    how: str = ""
    """How the environment is cloned, staged and exchanged."""
    state: str = ""
    """Last state of the journal."""
    asked: Asked | None = None
    stopping: bool = False
    """Whether the user asked to stop."""
    left: bool = False
    """Whether it was stopped because the user left the UI."""
    result: Record | EnvmedicError | None = None
    ended: float | None = None
    locks: tuple[Lock, ...] = ()
    """Lock files written from the repaired environment."""
    log: RepairLog = msgspec.field(default_factory=RepairLog)

    @property
    def round(self) -> int:
        """The round that it is in, from 1."""
        return len(self.rounds) + 1

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.result is None

    @property
    def stoppable(self) -> bool:
        """Whether stopping would still leave the environment unchanged."""
        return self.running and self.state not in _NEEDS_NOBODY

    @property
    def current(self) -> StageRow | None:
        """The part that runs now; a question that waits is one."""
        return next((row for row in reversed(self.stages) if row.running), None)

    def working(self) -> StageRow | None:
        """The part that events are about: they come in batches, and a question may be there before the last of them."""
        return next((row for row in reversed(self.stages) if row.running and row.part != "ask"), None)

    def elapsed(self, now: float) -> float:
        """Seconds so far, or that it took."""
        return max((self.ended if self.ended is not None else now) - self.began, 0.0)

    def expected_checks(self) -> int | None:
        """Number of outcomes that the running part will have, estimated from earlier parts; None if unknown."""
        row = self.current
        if row is None or row.part != "verify":
            return None
        before = sum(item.before is not None for item in self.checks.values())
        return before if before and before >= row.outcomes else None

    def expected_seconds(self, now: float) -> float | None:
        """Seconds that the running part will still take, by its own rate or by what the same checks took before."""
        row = self.current
        if row is None:
            return None
        progress, elapsed = row.progress, now - row.began
        if progress is not None and progress.unit == "checks":
            return progress.left_s
        # the rate of the first second is noise
        if progress is None or not progress.total or not progress.done or elapsed < 1:
            return None
        return max(elapsed / progress.done * (progress.total - progress.done), 0.0)

    def to_come(self) -> tuple[Part, ...]:
        """The parts that follow the last one that began, as far as they can be foreseen."""
        if not self.running:
            return ()
        seen = {row.part for row in self.stages if row.round == self.round}
        first: tuple[Part, ...] = ("preflight", *_fetch(self.plan), "fingerprint", "clone", "reproduce")
        parts = (*(first if self.round == 1 else ()), *_ROUND, *(_END if self.asks else _END[1:]))
        last = max((number for number, part in enumerate(parts) if part in seen), default=-1)
        return parts[last + 1 :]

    # transitions

    def after(self, events: Iterable[Event]) -> Repair:
        """After these events; lines that commands print are the log's."""
        repair = self
        for event in events:
            repair = _TAKES.get(type(event.data), _unchanged)(repair, event.data, event.time)
        return repair

    def asking(self, asked: Asked, now: float) -> Repair:
        """The repair with a question that waits for an answer."""
        row = StageRow("ask", now, self.round)
        stages = (*self.stages, row) if isinstance(asked, Exchange) else self.stages
        return replace(self, asked=asked, stages=stages)

    def answered(self, now: float) -> Repair:
        """The repair after the answer, or after the question became pointless."""
        ended = (_ended(row, now - row.began) if row.part == "ask" and row.running else row for row in self.stages)
        return replace(self, asked=None, stages=tuple(ended))

    def ending(self, result: Record | EnvmedicError, now: float) -> Repair:
        """The repair with its result."""
        done = isinstance(result, Record) and result.failure is None
        ended = (_ended(row, now - row.began, ok=done) if row.running else row for row in self.stages)
        return replace(self, result=result, asked=None, ended=now, stages=tuple(ended))


def _fetch(plan: Plan) -> tuple[Part, ...]:
    comes = any(isinstance(step, Install) or (isinstance(step, CondaChange) and step.install) for step in plan.steps)
    return ("fetch",) if comes else ()


def _ended(row: StageRow, seconds: float, *, ok: bool = True) -> StageRow:
    return replace(row, seconds=seconds, ok=ok)


def _part(stage: Stage, repair: Repair) -> Part:
    """The part that a stage of events belongs to: the fingerprint is taken twice, before and after."""
    if stage == "fingerprint":
        return "compare" if any(row.part == "clone" for row in repair.stages) else "fingerprint"
    return "other" if stage in _OUTSIDE else stage  # type: ignore[return-value]  # the other stages are parts


def _last(repair: Repair, **changes: object) -> Repair:
    """The repair with changes in the part that events are about."""
    row = repair.working()
    if row is None:
        return repair
    stages = tuple(replace(item, **changes) if item is row else item for item in repair.stages)
    return replace(repair, stages=stages)


def _unchanged(repair: Repair, _data: EventData, _time: float) -> Repair:
    return repair


def _stage_started(repair: Repair, data: StageStarted, time: float) -> Repair:
    row = StageRow(_part(data.stage, repair), time, repair.round)
    checks = repair.checks
    # a later round checks again: outcomes of the round before no longer count
    if data.stage == "verify":
        checks = {key: replace(item, after=None) for key, item in checks.items() if item.before is not None}
    return replace(repair, stages=(*repair.stages, row), checks=checks)


def _stage_finished(repair: Repair, data: StageFinished, _time: float) -> Repair:
    row = repair.working()
    return repair if row is None else _last(repair, seconds=data.seconds, ok=data.ok, note="")


def _progress(repair: Repair, data: Progress, _time: float) -> Repair:
    return _last(repair, progress=data)


def _transaction(repair: Repair, data: TransactionStarted, _time: float) -> Repair:
    how = f"cloned by {data.clone}, staged by {data.staging}, swapped by {data.exchange}"
    return replace(repair, directory=data.directory, how=how)


def _state(repair: Repair, data: StateChanged, time: float) -> Repair:
    if data.state == "exchanged":
        row = StageRow("exchange", time, repair.round, seconds=0.0)
        return replace(repair, state=data.state, stages=(*repair.stages, row))
    return replace(repair, state=data.state)


def _step(repair: Repair, data: StepStarted, _time: float) -> Repair:
    # a step that has begun is not done
    done = Progress(stage="steps", unit="steps", done=data.index - 1, total=data.total)
    return _last(repair, progress=done, note=data.description)


def _step_ended(repair: Repair, data: StepFinished, _time: float) -> Repair:
    row = repair.working()
    if row is None or row.progress is None or row.part != "steps":
        return repair
    told = Progress(stage="steps", unit="steps", done=data.index, total=row.progress.total)
    return _last(repair, progress=told)


def _check(repair: Repair, data: CheckFinished, _time: float) -> Repair:
    key = data.outcome.key
    row = replace(repair.checks.get(key, CheckRow()), **{_COLUMNS[data.phase]: data.outcome})
    counted = repair.working()
    repair = _last(repair, outcomes=counted.outcomes + 1) if counted is not None else repair
    return replace(repair, checks={**repair.checks, key: row})


def _round(repair: Repair, data: RoundStarted, _time: float) -> Repair:
    return replace(repair, rounds=(*repair.rounds, data.because))


def _notice(repair: Repair, data: Notice, _time: float) -> Repair:
    return replace(repair, warnings=(*repair.warnings, data.message)) if data.level == "warning" else repair


_COLUMNS: Final[dict[Phase, str]] = {"before": "before", "after": "after", "smoke": "smoke"}
_TAKES: Final[dict[type, Callable[[Repair, Any, float], Repair]]] = {
    StageStarted: _stage_started,
    StageFinished: _stage_finished,
    Progress: _progress,
    TransactionStarted: _transaction,
    StateChanged: _state,
    StepStarted: _step,
    StepFinished: _step_ended,
    CheckFinished: _check,
    RoundStarted: _round,
    Notice: _notice,
}
