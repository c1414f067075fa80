"""The check ``programs``: whether programs of an environment start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from envmedic.engine.stage.relocate import interpreter_of
from envmedic.engine.verify.kernel_session import NO_BYTECODE
from envmedic.model.checks import Check, Outcome
from envmedic.model.ports import Runner

_HEAD = 4096
"""Bytes read of a script; no path of an interpreter is longer."""
_NOT_STARTED = frozenset({126, 127})
"""Exit statuses by which a loader or a shell says that it could not start a program."""


def start(check: Check, runner: Runner, home: Path | None) -> Outcome:
    """Start each program that the check names.

    A script may do anything, so only the interpreter of its first line is started; a binary is asked for its version.
    Scripts of a copy may name the environment at `home`: then the copy's own interpreter is started.
    """
    started = monotonic()
    problems = [f"{name}: {why}" for name in check.arguments for why in _problems(name, check, runner, home)]
    return Outcome(
        check=check.name,
        status="fail" if problems else "pass",
        role=check.role,
        reason=problems[0] if problems else "",
        detail="\n".join(problems),
        seconds=monotonic() - started,
    )


def _problems(name: str, check: Check, runner: Runner, home: Path | None) -> Iterator[str]:
    file = runner.tree / name
    try:
        with file.open("rb") as opened:
            interpreter = interpreter_of(opened.read(_HEAD))
    except OSError as error:
        yield error.strerror or str(error)
        return
    if not os.access(file, os.X_OK):
        yield "Permission denied"
        return
    if interpreter is None:
        argv: tuple[str, ...] = (str(runner.python.parent.parent / name), "--version")
    else:
        program = os.fsdecode(interpreter)
        if home is not None and os.path.realpath(Path(program).parent.parent) == os.path.realpath(home):
            program = str(runner.python.with_name(Path(program).name))
        python = Path(program).name.startswith(("python", "pypy"))
        # `-E`: variables of this shell say nothing about the script; it also undoes the one against byte code
        argv = (program, "-B", "-E", "-c", "") if python else (program, "--version")
    try:
        result = runner(argv, env=NO_BYTECODE, timeout_s=check.timeout_s)
    except OSError as error:
        yield f"{argv[0]}: {error.strerror}"
        return
    # a program need not know --version: only one that could not run at all has not started
    if (
        result.timed_out
        or result.returncode < 0
        or result.returncode in _NOT_STARTED
        or (interpreter and result.returncode)
    ):
        lines = [line.strip() for line in (result.stdout + result.stderr).splitlines() if line.strip()]
        yield lines[-1] if lines else f"exit status {result.returncode}"
