"""stdout holds a document, stderr holds narration; this is the only place that writes to either."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from envmedic.cli.render.events import Narrator
from envmedic.cli.render.style import Style, plain, wants_colour
from envmedic.errors import CHANGED, RECOVERABLE, EnvmedicError, InputError
from envmedic.model.base import to_json
from envmedic.model.events import Event, EventStream
from envmedic.model.record import ErrorDocument

_STATES = {
    RECOVERABLE: "A transaction was interrupted; `envmedic recover` settles it",
    CHANGED: "The repaired environment is in place",
}


class Output:
    """What one command prints, by its output options."""

    def __init__(self, *, json: bool, quiet: bool, verbose: int, colour: str, events: str | None) -> None:
        self.json = json
        self.quiet = quiet
        self._out_style = Style(colour=not json and wants_colour(sys.stdout, colour))
        self._err_style = Style(colour=wants_colour(sys.stderr, colour))
        self.narrator = Narrator(sys.stderr, self._err_style, -1 if quiet else verbose)
        self._events = _events_file(events)
        sinks = [self.narrator] if self._events is not sys.stderr else []
        self.stream = EventStream([*sinks, self._write_event] if self._events else sinks)

    @classmethod
    def of(cls, args: argparse.Namespace) -> Output:
        """From parsed options."""
        return cls(json=args.json, quiet=args.quiet, verbose=args.verbose, colour=args.color, events=args.events)

    @property
    def style(self) -> Style:
        """The style of stdout."""
        return self._out_style

    @property
    def err_style(self) -> Style:
        """The style of stderr."""
        return self._err_style

    def document(self, document: object, lines: Sequence[str]) -> None:
        """Print `document` as JSON under ``--json``, else `lines`."""
        self.narrator.close()
        text = to_json(document) if self.json else "\n".join(lines)
        _write(sys.stdout, text + "\n")

    def narrate(self, text: str) -> None:
        """Print a line on stderr, unless quiet."""
        self.narrator.close()
        if not self.quiet:
            _write(sys.stderr, text + "\n")

    def error(self, error: EnvmedicError) -> None:
        """Print `error`: as a document under ``--json``, and always as text on stderr."""
        self.narrator.close()
        if self.json:
            _write(sys.stdout, to_json(error_document(error)) + "\n")
        _write(sys.stderr, "\n".join(error_lines(error, self._err_style)) + "\n")

    def _write_event(self, event: Event) -> None:
        if self._events is not None:
            _write(self._events, to_json(event, indent=0) + "\n")


def _events_file(name: str | None) -> TextIO | None:
    if name is None:
        return None
    if name == "-":
        return sys.stderr
    try:
        return Path(name).open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise InputError(
            f"The events file {name} cannot be written", cause=error.strerror, hint="Name another file"
        ) from error


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        # the reader has gone (`envmedic history | head`): what is left goes nowhere, at exit too
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def error_document(error: EnvmedicError) -> ErrorDocument:
    """`error` as ``envmedic.error/1``."""
    return ErrorDocument(
        code=error.code,
        exit_code=int(error.exit_code),
        summary=error.summary,
        cause=error.cause,
        hint=error.hint,
        environment=error.environment,
        details=error.details,
    )


def error_lines(error: EnvmedicError, style: Style) -> list[str]:
    """What happened, the likely cause, one next step, and what became of the environment."""
    lines = [f"{style('error:', 'bad')} {plain(error.summary)}"]
    lines += [f"  {plain(line)}" for detail in error.details for line in detail.splitlines()]
    if error.cause:
        lines += [f"  cause: {plain(line)}" for line in error.cause.splitlines()[:1]]
        lines += [f"         {plain(line)}" for line in error.cause.splitlines()[1:]]
    if error.hint:
        lines.append(f"  hint: {plain(error.hint)}")
    lines.append(f"  {_STATES.get(error.environment, 'The environment is unchanged')}")
    return lines
