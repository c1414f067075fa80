"""The offer to repair after a failure under ``envmedic run``: asked on stderr, of somebody who is there.

stdout stays the command's, and so does the exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import shlex
import sys
import termios
from typing import Final, TextIO

from envmedic.cli.output import CommandOutput
from envmedic.errors import EnvmedicError, Interrupted
from envmedic.model.findings import Diagnosis
from envmedic.render.documents.diagnosis import diagnosis_lines, next_command
from envmedic.render.streams import write

ANSWER_S: Final = 30.0
"""Seconds until no answer is a no: a program may have been left to run."""


def can_ask() -> bool:
    """Whether somebody sees the question and can answer: terminals, and this process in the foreground of them."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # no controlling terminal
        return False


def offer(args: argparse.Namespace, output: CommandOutput, diagnosis: Diagnosis, repair: str) -> None:
    """Ask, and carry out `repair` after a yes, where there is something to repair. The plan is shown and asked about too."""
    if args.no_ask or output.json or not next_command(diagnosis) or not can_ask():
        return
    unproven = any(item.kind == "unproven" for item in diagnosis.obstacles)
    question = f"Repair a copy now{', without proof on a GPU' if unproven else ''}? [y/N/details] "
    answer = _answer(question)
    if answer in {"d", "details"}:
        output.insist(diagnosis_lines(diagnosis, repair, detail=True))
        answer = _answer(question)
    if answer in {"y", "yes"}:
        _repair(shlex.split(repair)[1:], args.color)


def _answer(question: str) -> str:
    # keys that were meant for the program must not answer; flushed before the question, else a quick answer to it goes too
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    write(sys.stderr, "\n" + question)
    answer = line_within(sys.stdin, ANSWER_S)
    if answer is None:
        write(sys.stderr, f"\nNo answer in {ANSWER_S:.0f} s: nothing is repaired\n")
    return (answer or "").strip().lower()


def line_within(stream: TextIO, seconds: float) -> str | None:
    """The next line of `stream`, None where none has come within `seconds`."""
    ready, _, _ = select.select([stream], [], [], seconds)
    return stream.readline() if ready else None


def _repair(words: list[str], colour: str) -> None:
    """Run ``envmedic apply …``, with its result on stderr."""
    from envmedic.cli.commands import repair
    from envmedic.cli.main import parse

    with contextlib.redirect_stdout(sys.stderr):
        args = parse([*words, "--color", colour])
        output = CommandOutput.of(args)
        try:
            repair.apply(args, output)
        except EnvmedicError as error:
            output.error_beside(error)
        except KeyboardInterrupt:
            output.error_beside(Interrupted("The repair was interrupted"))
