"""Narration of the event stream on stderr: progress that moves on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from typing import TextIO, get_args

from envmedic.model.events import (
    CheckFinished,
    Event,
    EventData,
    Notice,
    OutputLine,
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
from envmedic.model.registries.registry import complete
from envmedic.render.documents.checks import outcome_lines
from envmedic.render.streams import write
from envmedic.render.style import Style, duration, size
from envmedic.render.text import Line, joined, line, part, visible

REDRAW_S = 0.1
PLAIN_EVERY_S = 5.0
SILENT_S = 1.0
"""A shorter stage is not announced on its own."""

STAGES: Mapping[Stage, str] = complete(get_args(Stage), {
    "probe": "reading the environment",
    "resolve": "resolving exact wheels",
    "solve": "solving for conda packages",
    "fetch": "fetching wheels",
    "preflight": "checking that a repair can start",
    "clone": "cloning the environment",
    "reproduce": "running the checks before the repair",
    "steps": "repairing the clone",
    "make": "making the environment",
    "verify": "running the checks",
    "fingerprint": "comparing the original with its fingerprint",
    "exchange": "swapping the clone in",
    "smoke": "checking the environment in place",
    "undo": "bringing the earlier environment back",
    "redo": "bringing the repaired environment back",
    "recover": "recovering an interrupted transaction",
    "prune": "removing old generations",
}, stated="`Stage` in envmedic/model/events.py", add="its words to `STAGES` beside the renderer of events")  # fmt: skip


class Narrator:
    """A sink of events that prints them for a person. `verbosity` below 0 is silent but for warnings."""

    def __init__(self, stream: TextIO, style: Style, verbosity: int = 0) -> None:
        self._stream = stream
        self._style = style
        self._verbosity = verbosity
        self.shows_output = False
        """Whether what commands print is shown although nobody asked for details: the user's own command."""
        self._moving = stream.isatty()
        self._drawn = False
        self._last = 0.0
        self._stage_began: dict[Stage, float] = {}
        self._stage: Stage | None = None

    def __call__(self, event: Event) -> None:
        """Take one event."""
        data = event.data
        # a download reports thousands of times: reports are thinned by time before they become lines
        if isinstance(data, Progress):
            self._progress(data)
            return
        if isinstance(data, StageStarted):
            self._start(data.stage)
        echoed = self.shows_output and isinstance(data, OutputLine) and self._verbosity >= 0
        for text in self._style.text(event_lines(data, 1 if echoed else self._verbosity)):
            self._clear()
            write(self._stream, f"{text}\n")

    def close(self) -> None:
        """Leave the terminal on a fresh line."""
        self._clear()

    def _start(self, stage: Stage) -> None:
        """A stage begins; on a terminal it is named until something else is."""
        self._stage = stage
        self._stage_began[stage] = time.monotonic()
        if self._moving and self._verbosity >= 0:
            self._draw(STAGES[stage])

    def _progress(self, data: Progress) -> None:
        now = time.monotonic()
        # the progress of a stage whose start was not announced counts from its first report
        began = self._stage_began.setdefault(data.stage, now)
        pause = REDRAW_S if self._moving else PLAIN_EVERY_S
        if self._verbosity < 0 or now - began < SILENT_S or now - self._last < pause:
            return
        self._last = now
        # a check asked of the environment as it was belongs to the stage that asks
        stage = self._stage if data.unit == "checks" and self._stage is not None else data.stage
        told = f"{STAGES[stage]}: {amount(data)}"
        if self._moving:
            self._draw(told)
        else:
            write(self._stream, f"{told}\n")

    def _draw(self, text: str) -> None:
        """Write `text` where the next one will be written over it."""
        self._clear()
        # asked each time, since terminals are resized; one column less, since a wrapped line cannot be cleared
        width = shutil.get_terminal_size().columns
        write(self._stream, text[: max(width - 1, 20)])
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            write(self._stream, "\r\x1b[K")
            self._drawn = False


def event_lines(data: EventData, verbosity: int) -> list[Line]:
    """An event in words; progress and the start of a stage have none, since only a moving display shows them."""
    if isinstance(data, Notice):
        if data.level == "warning":
            return [joined(part("warning: ", "warn"), data.message)]
        return [line(data.message)] if verbosity >= 0 else []
    if verbosity < 0:
        return []
    if isinstance(data, StageFinished) and (data.seconds >= SILENT_S or verbosity > 0):
        word = part("done") if data.ok else part("failed", "bad")
        return [joined(f"{STAGES[data.stage]}: ", word, f" in {duration(data.seconds)}")]
    if isinstance(data, CheckFinished) and verbosity > 0:  # the table in the result is enough for most users
        return outcome_lines([data.outcome])
    return [line(text) for text in (_steps(data) or (_details(data) if verbosity > 0 else []))]


def _steps(data: EventData) -> list[str]:
    if isinstance(data, TransactionStarted):
        return [f"transaction in {data.directory}: clone by {data.clone}, staged by {data.staging}"]
    if isinstance(data, StepStarted):
        return [f"step {data.index} of {data.total}: {data.description}"]
    if isinstance(data, StepFinished) and not data.ok:
        return [f"step {data.index} failed: {data.detail}"]
    if isinstance(data, RoundStarted):
        return [f"round {data.round}: {data.because}"]
    return []


def _details(data: EventData) -> list[str]:
    if isinstance(data, OutputLine):
        return [f"    {data.line}"]
    if isinstance(data, StateChanged):
        return [f"    journal: {data.state}"]
    return []


def left(data: Progress) -> str:
    """How long it still takes, where that is known."""
    return f"about {duration(data.left_s)} left" if data.left_s is not None and data.left_s >= SILENT_S else ""


def amount(data: Progress) -> str:
    """The progress of a stage in its unit, as ``12.0 MB of 80.0 MB``."""
    if data.unit == "bytes":
        done, total, unit = size(data.done), size(data.total), ""
    else:
        done, total = f"{data.done:,}", f"{data.total:,}" if data.total is not None else "?"
        unit = data.unit.removesuffix("s") if data.done == 1 and data.total is None else data.unit
    text = done if data.total is None else f"{done} of {total}"
    if data.unit == "checks":
        # the estimate before the names: a terminal cuts the end off
        return ", ".join(part for part in (f"{text} {unit}", left(data), visible(data.label)) if part)
    return " ".join(part for part in (text, unit, visible(data.label)) if part)
