"""Events: one stream for CLI text, JSON lines, journal, terminal UI and tests.

Code that works emits the data; `EventStream` stamps it. Sentences are made by renderers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from envmedic.model.base import Model
from envmedic.model.checks import Outcome, Phase
from envmedic.redact import redact_text

Stage = Literal[
    "probe", "resolve", "solve", "fetch", "make", "preflight", "clone", "reproduce", "steps", "verify",
    "fingerprint", "exchange", "smoke", "witness", "undo", "redo", "recover", "prune",
]  # fmt: skip


EnvironmentNow = Literal["unchanged", "repaired", "installed", "restored"]
"""What became of an environment."""


class StageStarted(Model, frozen=True, kw_only=True, tag="stage-started"):
    """A stage begins."""

    stage: Stage
    """Which."""


class StageFinished(Model, frozen=True, kw_only=True, tag="stage-finished"):
    """A stage ended, well or not."""

    stage: Stage
    """Which."""
    seconds: float
    """How long it took."""
    ok: bool = True
    """Whether it came to its end without an error."""


class Progress(Model, frozen=True, kw_only=True, tag="progress"):
    """How far a stage is; `total` is null when it cannot be known."""

    stage: Stage
    """Which."""
    unit: Literal["files", "bytes", "checks", "steps", "machines"]
    """What is counted."""
    done: int
    """Number so far."""
    total: int | None = None
    """Number in the end."""
    label: str = ""
    """What is being worked on."""
    left_s: float | None = None
    """Seconds that it will still take by what the same took before; null where that is not known."""
    item_done: int | None = None
    """Number so far of what `label` names, where that is one of several."""
    item_total: int | None = None
    """Its number in the end."""


class TransactionStarted(Model, frozen=True, kw_only=True, tag="transaction-started"):
    """A transaction directory exists; the environment is untouched."""

    prefix: str
    """The environment as the user named it."""
    directory: str
    """The transaction's directory."""
    clone: str
    """``reflink``, ``link`` or ``copy``."""
    staging: str
    """``namespace`` or ``relocate``."""
    exchange: str
    """``exchange``, ``two-renames`` or ``link``."""
    notes: tuple[str, ...] = ()
    """Why not the better way, and what was waived."""


class StateChanged(Model, frozen=True, kw_only=True, tag="state-changed"):
    """The journal's state moved on, durably."""

    state: str
    """The new state."""


class StepStarted(Model, frozen=True, kw_only=True, tag="step-started"):
    """A step of the plan begins in the clone."""

    index: int
    """From 1."""
    total: int
    """Number of steps in the plan."""
    description: str
    """One line for people."""
    commands: tuple[tuple[str, ...], ...] = ()
    """argv of each command of the step."""


class StepFinished(Model, frozen=True, kw_only=True, tag="step-finished"):
    """A step ended."""

    index: int
    """From 1."""
    seconds: float
    """How long it took."""
    ok: bool
    """Whether it was carried out."""
    detail: str = ""
    """What there is to say of it."""


class OutputLine(Model, frozen=True, kw_only=True, tag="output"):
    """One line that a command printed."""

    source: str
    """Who printed it: the name of a program, ``checks`` or ``command``."""
    line: str
    """Without its line end."""


class CheckFinished(Model, frozen=True, kw_only=True, tag="check-finished"):
    """A check ended on one device."""

    phase: Phase
    """Before the steps, after them, or in place."""
    outcome: Outcome
    """How it came out."""


class RoundStarted(Model, frozen=True, kw_only=True, tag="round-started"):
    """The repair loop extends the plan after a new fault."""

    round: int
    """From 2."""
    because: str
    """What failed in the round before."""


# The code is stable, the sentence is not: scripts that read events match the code.
class Notice(Model, frozen=True, kw_only=True, tag="notice"):
    """Something the user should know."""

    code: str
    """Stable name."""
    message: str
    """The sentence in English."""
    level: Literal["info", "warning"] = "info"
    """How much it matters."""


class TransactionFinished(Model, frozen=True, kw_only=True, tag="transaction-finished"):
    """The transaction came to its end; `environment` is ``unchanged``, ``repaired``, ``installed`` or ``restored``."""

    state: str
    """The state that it ended in."""
    environment: EnvironmentNow
    """What became of the environment."""


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


def distinct(emit: Emit) -> Emit:
    """`emit` without repeats of the last event: some progress only shows that work goes on."""
    # A download that stands still repeats its last progress, so that `emit` can raise a cancellation.
    last: EventData | None = None

    def tell(data: EventData) -> None:
        nonlocal last
        if data != last:
            last = data
            emit(data)

    return tell


# A number besides the time: the clock of a machine may be set back, and renderers need the order.
class Event(Model, frozen=True, kw_only=True):
    """An event's data with its transaction, place in the stream and time (seconds since the epoch)."""

    transaction: str | None
    """Its id, null before one began."""
    sequence: int
    """From 0, without gaps in one run of the program."""
    time: float
    """Seconds since 1970-01-01 UTC."""
    data: EventData
    """What happened; ``type`` says what kind of event it is."""


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
        """Stamp `data` and deliver it, without the secrets in lines of output."""
        # redacted once, before any sink, since some sinks write to disk
        if isinstance(data, OutputLine):
            data = msgspec.structs.replace(data, line=redact_text(data.line))
        event = Event(transaction=self.transaction, sequence=self._sequence, time=self._clock(), data=data)
        # before the sinks run: one that raises must not give its number to the next event
        self._sequence += 1
        for sink in self._sinks:
            sink(event)
