"""Narration of the event stream on stderr: progress that moves on a terminal, plain lines elsewhere."""

from __future__ import annotations

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
from envmedic.render.live_line import LiveLine, amount_and_pace, bar
from envmedic.render.streams import write
from envmedic.render.style import Style, duration, size
from envmedic.render.text import Line, TextPart, joined, line, part, visible

REDRAW_S = 0.1
PLAIN_EVERY_S = 5.0
_NAME = 18
"""Characters of a file's name before its bar."""
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
    "witness": "asking the other machines",
    "undo": "bringing the earlier environment back",
    "redo": "bringing the repaired environment back",
    "recover": "recovering an interrupted transaction",
    "prune": "removing old generations",
}, stated="`Stage` in envmedic/model/events.py", add="its words to `STAGES` beside the renderer of events")  # fmt: skip


_WAITS: frozenset[Stage] = frozenset({"resolve", "solve", "fetch", "clone", "make"})
"""Stages in which nothing may be reported for seconds, and in which envmedic does not fork beside the spinner's thread."""


class Narrator:
    """A sink of events that prints them for a person. `verbosity` below 0 is silent but for warnings."""

    def __init__(self, stream: TextIO, style: Style, verbosity: int = 0) -> None:
        self._stream = stream
        self._style = style
        self._verbosity = verbosity
        self.shows_output = False
        """Whether what commands print is shown although nobody asked for details: the user's own command."""
        self._live = LiveLine(stream) if stream.isatty() else None
        self._last = 0.0
        self._stage_began: dict[Stage, float] = {}
        self._item_began: dict[str, float] = {}
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
            self._print(text)
        if isinstance(data, StageFinished):
            self.close()

    def close(self) -> None:
        """Leave the terminal on a fresh line."""
        if self._live is not None:
            self._live.clear()

    def _print(self, text: str) -> None:
        self.close()
        write(self._stream, f"{text}\n")

    def _start(self, stage: Stage) -> None:
        """A stage begins; on a terminal it is named until something else is."""
        self._stage = stage
        self._stage_began[stage] = time.monotonic()
        if self._live is not None and self._verbosity >= 0:
            self._live.show(STAGES[stage], began=self._stage_began[stage], ticks=stage in _WAITS)

    def _progress(self, data: Progress) -> None:
        now = time.monotonic()
        # the progress of a stage whose start was not announced counts from its first report
        began = self._stage_began.setdefault(data.stage, now)
        if data.label not in self._item_began:
            self._item_began[data.label] = now
        if self._verbosity < 0:
            return
        if data.item_total and data.item_done == data.item_total:
            self._fetched(data, now - self._item_began[data.label])
        pause = REDRAW_S if self._live is not None else PLAIN_EVERY_S
        if now - began < SILENT_S or now - self._last < pause:
            return
        self._last = now
        if self._live is not None:
            self._live.show(self._told(data, now), began=began, ticks=data.stage in _WAITS)
        else:
            write(self._stream, f"{self._named(data)}\n")

    def _named(self, data: Progress) -> str:
        """A report after the name of its stage: a check asked of the environment as it was is of the stage that asks."""
        stage = self._stage if data.unit == "checks" and self._stage is not None else data.stage
        return f"{STAGES[stage]}: {amount(data)}"

    def _told(self, data: Progress, now: float) -> str:
        """A report on a terminal: a bar for a file of known size."""
        if data.unit == "bytes" and data.item_total and data.item_done is not None:
            pace = amount_and_pace(data.item_done, data.item_total, now - self._item_began[data.label])
            return f"{visible(data.label)[:_NAME]:<{_NAME}} {bar(data.item_done, data.item_total)} {pace}"
        return self._named(data)

    def _fetched(self, data: Progress, seconds: float) -> None:
        """A file is there: a line of its own where that took a while, on a terminal, where its bar was seen."""
        if self._live is not None and seconds >= SILENT_S:
            told = f"  {visible(data.label)}  {size(data.item_total)} in {duration(seconds)}"
            self._print(self._style.printed((TextPart("✓", "good"), TextPart(told))))


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
