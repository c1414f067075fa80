"""One stream of events feeds CLI text, JSON lines, journal, terminal UI and tests.

Code that works emits the data; `EventStream` stamps it. Sentences are made by renderers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Literal

from envmedic.model.base import Model
from envmedic.model.checks import Outcome, Phase

Stage = Literal[
    "probe", "resolve", "fetch", "preflight", "clone", "reproduce", "steps", "verify", "fingerprint",
    "exchange", "smoke", "undo", "redo", "recover", "prune",
]  # fmt: skip


class StageStarted(Model, frozen=True, kw_only=True, tag="stage-started"):
    """A stage begins."""

    stage: Stage


class StageFinished(Model, frozen=True, kw_only=True, tag="stage-finished"):
    """A stage ended, well or not."""

    stage: Stage
    seconds: float
    ok: bool = True


class Progress(Model, frozen=True, kw_only=True, tag="progress"):
    """How far a stage is; `total` is None when it cannot be known."""

    stage: Stage
    unit: Literal["files", "bytes", "checks", "steps"]
    done: int
    total: int | None = None
    label: str = ""


class TransactionStarted(Model, frozen=True, kw_only=True, tag="transaction-started"):
    """A transaction directory exists; the environment is untouched."""

    prefix: str
    directory: str
    clone: str
    """``reflink``, ``link``, ``copy`` or ``snapshot``."""
    staging: str
    """``namespace`` or ``relocate``."""
    exchange: str
    """``exchange`` or ``two-renames``."""
    notes: tuple[str, ...] = ()


class StateChanged(Model, frozen=True, kw_only=True, tag="state-changed"):
    """The journal's state moved on, durably."""

    state: str


class StepStarted(Model, frozen=True, kw_only=True, tag="step-started"):
    """A step of the plan begins in the clone."""

    index: int
    total: int
    description: str
    commands: tuple[tuple[str, ...], ...] = ()


class StepFinished(Model, frozen=True, kw_only=True, tag="step-finished"):
    """A step ended."""

    index: int
    seconds: float
    ok: bool
    detail: str = ""


class OutputLine(Model, frozen=True, kw_only=True, tag="output"):
    """One line that a command printed."""

    source: str
    line: str


class CheckFinished(Model, frozen=True, kw_only=True, tag="check-finished"):
    """A check ended on one device."""

    phase: Phase
    outcome: Outcome


class RoundStarted(Model, frozen=True, kw_only=True, tag="round-started"):
    """The repair loop extends the plan after a new fault."""

    round: int
    because: str


class Notice(Model, frozen=True, kw_only=True, tag="notice"):
    """Something the user should know; `code` is stable, `data` fills the renderer's sentence."""

    code: str
    message: str
    level: Literal["info", "warning"] = "info"


class TransactionFinished(Model, frozen=True, kw_only=True, tag="transaction-finished"):
    """The transaction came to its end; `environment` is ``unchanged``, ``repaired`` or ``restored``."""

    state: str
    environment: Literal["unchanged", "repaired", "restored"]


EventData = (
    StageStarted
    | StageFinished
    | Progress
    | TransactionStarted
    | StateChanged
    | StepStarted
    | StepFinished
    | OutputLine
    | CheckFinished
    | RoundStarted
    | Notice
    | TransactionFinished
)
Emit = Callable[[EventData], None]


class Event(Model, frozen=True, kw_only=True):
    """An event's data with its transaction, place in the stream and time (seconds since the epoch)."""

    transaction: str | None
    sequence: int
    time: float
    data: EventData


Sink = Callable[[Event], None]


class EventStream:
    """Stamps events and hands each to every sink, in order."""

    def __init__(self, sinks: Iterable[Sink], clock: Callable[[], float] = time.time) -> None:
        self._sinks = list(sinks)
        self._clock = clock
        self._sequence = 0
        self.transaction: str | None = None

    def add(self, sink: Sink) -> None:
        """Send what follows to `sink` too."""
        self._sinks.append(sink)

    def emit(self, data: EventData) -> None:
        """Stamp `data` and deliver it."""
        event = Event(transaction=self.transaction, sequence=self._sequence, time=self._clock(), data=data)
        self._sequence += 1
        for sink in self._sinks:
            sink(event)
