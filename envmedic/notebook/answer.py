"""The answer to a kernel: its last error diagnosed in its own environment, and its cell kept as the case."""

from __future__ import annotations

import os
import shlex
import time
from contextlib import suppress
from pathlib import Path

from envmedic.api import diagnosis, running
from envmedic.api.context.observation import observe
from envmedic.api.context.settings import NamedTarget, Settings
from envmedic.api.context.target import find_prefix
from envmedic.api.context.texts import keep_text
from envmedic.api.planning import cases
from envmedic.api.playbooks import load_playbooks
from envmedic.api.recovery import tell_unsettled
from envmedic.model.base import from_json
from envmedic.model.events import Event, EventStream, Notice
from envmedic.model.findings import Diagnosis
from envmedic.notebook.cells import cell_program
from envmedic.notebook.messages import CellAnswer, CellQuestion
from envmedic.notebook.restart import Stale, kernel_lines, stale_modules
from envmedic.proc.output import OutputTail
from envmedic.proc.passthrough import Ending
from envmedic.redact import redact_text
from envmedic.render.documents.diagnosis import diagnosis_lines, next_command
from envmedic.render.html import block
from envmedic.render.style import Style
from envmedic.render.text import Line, line

_FAILED = Ending(1)
"""How a program ends that stops at an error, as a cell does."""
_NEXT_LINES = 2
"""The last lines of a diagnosis with a next command: that, and an empty one before it."""


def answer(text: bytes) -> CellAnswer:
    """Answer the question of a kernel. Raises InputError for one of another kind, and what a diagnosis raises."""
    hint = "Load the extension again: `envmedic notebook` prints how"
    question = from_json(text, CellQuestion, source="The question of the kernel", hint=hint)
    warnings: list[Line] = []

    def on_event(event: Event) -> None:
        if isinstance(event.data, Notice) and event.data.level == "warning":
            warnings.append(line(f"! {event.data.message}", "warn"))

    settings = Settings(stream=EventStream((on_event,)))
    # the envmedic of a kernel's environment reads its own; the obstacles say that another one has to repair it
    prefix = find_prefix(NamedTarget(prefix=question.prefix), own=True)
    tell_unsettled(settings, prefix)
    ran, told = _kept(prefix, question) if question.source is not None else (None, "")
    found = running.diagnose_run(settings, prefix, ran) if ran is not None else _diagnosed(settings, prefix, question)
    command = _command(found, prefix, question.text, kept=ran is not None)
    rows = diagnosis_lines(found, command, detail=question.detail)
    repaired = bool(next_command(found, command))
    end = len(rows) - _NEXT_LINES if repaired else len(rows)
    kernel = kernel_lines(found, _stale(found, question), question.text, repaired_by_command=repaired)
    about_cell = [line(told, "dim")] if told else []
    lines = [*rows[:end], line(""), *warnings, *about_cell, *kernel, *rows[end:]]
    style = Style(colour=question.columns > 0, width=lambda: question.columns or None)
    return CellAnswer(text="\n".join(style.text(lines)), html=block(lines))


def _kept(prefix: Path, question: CellQuestion) -> tuple[running.Ran | None, str]:
    """Keep the cell as the case; return its failure, None where it is not kept, and a sentence on that."""
    program = cell_program(question.source or "", question.earlier)
    why_not = program.why_not
    if not why_not and redact_text(program.source) != program.source:
        why_not = "it holds a secret; read that from a variable or a file"
    if not why_not:
        output = OutputTail()
        output.feed("", question.text.encode("utf-8", "surrogateescape"))
        try:
            argv = (question.python, str(cases.keep_program(prefix, program.source)))
            ran = running.Ran(argv, _FAILED, output, dict(os.environ), question.seconds)
            cases.keep(prefix, ran)
        except OSError as error:
            why_not = f"{error.strerror} ({error.filename})"
        else:
            return ran, "The cell is kept, and decides on the repair"
    return None, f"The cell is not kept for `envmedic apply --last`: {why_not}"


def _diagnosed(settings: Settings, prefix: Path, question: CellQuestion) -> Diagnosis:
    if not question.text:
        return diagnosis.diagnose(settings, prefix, ())[0]
    facts, lines = observe(settings, prefix), question.text.encode("utf-8", "surrogateescape").splitlines(keepends=True)
    playbooks = load_playbooks(settings)
    return diagnosis.diagnose_output(settings, playbooks, facts, lines, prefix=prefix, name="the last cell", here=True)


def _command(found: Diagnosis, prefix: Path, text: str, *, kept: bool) -> str:
    """The command that goes on; empty for that of a diagnosis without a text."""
    if kept:
        unproven = any(item.kind == "unproven" for item in found.obstacles)
        return shlex.join(["envmedic", "apply", "--last", *(["--no-gpu"] if unproven else []), "-p", str(prefix)])
    by_text = any(item.signature is not None for first in found.findings[:1] for item in first.with_consequences)
    return shlex.join(["envmedic", "plan", "--log", str(keep_text(text)), "-p", str(prefix)]) if by_text else ""


def _stale(found: Diagnosis, question: CellQuestion) -> tuple[Stale, ...]:
    environment, started = found.facts.environment if found.facts is not None else None, _started(question.pid)
    if environment is None or started is None:
        return ()
    changed: dict[str, float] = {}
    for item in environment.distributions:
        with suppress(OSError):  # a package that went meanwhile
            changed[item.metadata_path] = (Path(environment.prefix) / item.metadata_path).stat().st_ctime
    return stale_modules(environment.distributions, question.modules, changed, started)


def _started(pid: int) -> float | None:
    """When a process started, in seconds since the epoch; None where that cannot be told."""
    try:
        # proc(5): field 22 of stat, in ticks since boot; the name of the process, in brackets, may hold anything
        ticks = int(
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
        )
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")
