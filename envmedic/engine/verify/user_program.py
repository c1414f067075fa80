"""The user's program as the deciding check: run in the clone as it failed in the environment, and judged by its output."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from envmedic import activation
from envmedic.engine.stage import environ
from envmedic.engine.verify import kernel_session
from envmedic.engine.verify.kernel_session import NO_BYTECODE, message_of, plain
from envmedic.model.checks import Check, Outcome, Phase
from envmedic.model.events import Emit, Notice, OutputLine
from envmedic.model.ports import ProgramJudge, Runner
from envmedic.model.program import Program, is_kept
from envmedic.proc.output import OutputTail

_KEPT_BYTES = 4 << 20
_KEPT_DETAIL = 4000
_PARTS = re.compile("([:=])")


def run(check: Check, program: Program, runner: Runner, phase: Phase, emit: Emit, *, judge: ProgramJudge) -> Outcome:
    """Run `check`, whose `program` it is, until it ends or has passed the point, and stop it with all its children.

    A program that cannot be started is skipped. What is no fault of an environment counts for nothing: such an outcome
    is a skip that is not applicable. Raises OSError where the environment's Python cannot be started.
    """
    place, limit_s = runner.python.parent.parent, program.limit_s(repaired=phase != "before")
    told = shlex.join(check.arguments)
    emit(Notice(code="program", message=f"Your program runs in {program.directory}, at most {limit_s:.0f} s: {told}"))
    output, refused = OutputTail(_KEPT_BYTES), ""

    def on_line(line: str) -> None:
        nonlocal refused
        message = message_of(line) or {}
        refused = message.get("refused", refused)
        if not message:
            output.feed("command", line.encode("utf-8", "replace") + b"\n")
            if line:
                emit(OutputLine(source="command", line=plain(line)))

    argv = kernel_session.launcher(
        runner,
        rebased_words(check.arguments, program, place),
        directory=_moved(program.directory, program, place),
        changes=_changes(program, runner.tree, place),
    )
    result = runner(argv, env=NO_BYTECODE, on_line=on_line, timeout_s=limit_s)
    name = f"command {' '.join(check.arguments)}"
    if refused:
        return Outcome(check=name, role=check.role, status="skip", reason=refused)
    if result.returncode == 0 and not result.timed_out:
        return Outcome(check=name, role=check.role, status="pass", seconds=result.seconds, program="passed")
    said = judge(check, output.lines(), None if result.timed_out else result.returncode, place)
    if result.timed_out and said.kind != "reported":
        reason = f"passed the point: no reported error within {limit_s:.0f} s, then stopped"
        return Outcome(
            check=name,
            role=check.role,
            status="pass",
            reason=reason,
            seconds=result.seconds,
            program="passed the point",
        )
    if said.kind == "elsewhere":
        return Outcome(
            check=name,
            role=check.role,
            status="skip",
            applicable=False,
            reason=f"failed elsewhere: {said.why}",
            seconds=result.seconds,
            program="failed elsewhere",
        )
    detail = plain(b"".join(output.lines()).decode("utf-8", "replace"))[-_KEPT_DETAIL:]
    return Outcome(
        check=name,
        role=check.role,
        status="fail",
        reason=said.why,
        detail=detail,
        seconds=result.seconds,
        program="failed",
    )


def rebased_words(words: tuple[str, ...], program: Program, place: Path) -> tuple[str, ...]:
    """`words` of a command with paths inside the environment as they are below `place`, where the clone appears.

    A relative path, such as ``.venv/bin/python``, is followed from the program's directory.
    """
    return tuple(_word(word, program, place) for word in words)


def _word(word: str, program: Program, place: Path) -> str:
    path = os.path.normpath(os.path.join(program.directory, word))  # noqa: PTH118  # keeps links
    if "/" in word and not word.startswith("/") and os.path.lexists(path):
        moved = _moved(path, program, place)
        return word if moved == path else moved
    return _moved(word, program, place)


def _moved(text: str, program: Program, place: Path) -> str:
    """`text` with the environment's path replaced in each part of a list of paths, and after ``=``."""
    return "".join(_moved_path(part, program, place) for part in _PARTS.split(text))


def _moved_path(path: str, program: Program, place: Path) -> str:
    # the longest spelling first: one may lead into another
    for prefix in sorted(program.prefixes, key=len, reverse=True):
        if path == prefix or path.startswith(f"{prefix}/"):
            return f"{place}{path[len(prefix) :]}"
    return path


def _changes(program: Program, tree: Path, place: Path) -> Mapping[str, str | None]:
    """The variables of the case over those of this process, as an activation of the clone sets and unsets them."""
    case = {name: _moved(value, program, place) for name, value in program.variables.items()}
    given = {name: value for name, value in os.environ.items() if not is_kept(name)} | case
    kept = activation.activated_values(tree, place, given)
    wanted = activation.overlaid(environ.variables(place, {}, given), kept)
    # what a stopped program has buffered would be lost, and the reported error with it
    wanted = {"PYTHONUNBUFFERED": "1", **wanted, **NO_BYTECODE}
    return {name: wanted.get(name) for name in sorted({*os.environ, *wanted}) if is_kept(name)}
