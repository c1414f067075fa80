"""stdout holds a document, stderr holds narration; this is the only place that writes to either."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from msgspec.structs import replace

from envmedic.errors import CHANGED, UNCHANGED, EnvmedicError, InputError
from envmedic.model.base import to_json
from envmedic.model.events import Event, EventStream
from envmedic.model.record import Record, error_document
from envmedic.render.documents.errors import error_lines
from envmedic.render.encodings import WORDS
from envmedic.render.events import Narrator
from envmedic.render.streams import discard, wants_colour, write
from envmedic.render.style import Style, columns, plain
from envmedic.render.text import Line, line

# DEL and C1 controls, and the marks that reverse the direction of text; JSON itself escapes C0 only.
_ACTING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class CommandOutput:
    """Output of one command, according to its output options."""

    def __init__(self, *, json: bool, quiet: bool, verbose: int, colour: str, events: str | None) -> None:
        self.json = json
        self.quiet = quiet
        self.verbose = verbose > 0
        self._out_style = Style(
            colour=not json and wants_colour(sys.stdout, colour), width=partial(columns, sys.stdout)
        )
        self._err_style = Style(colour=wants_colour(sys.stderr, colour), width=partial(columns, sys.stderr))
        self.narrator = Narrator(sys.stderr, self._err_style, -1 if quiet else verbose)
        _tolerate_any_text(sys.stdout)
        self.target: tuple[str, ...] = ()
        """The words by which the user named the environment: commands that errors show are about the same one."""
        self.interrupted: str | None = None
        """The interrupted transaction on the environment that the command reads, which its document names."""
        self._events = _events_file(events)
        sinks = [self.narrator] if self._events is not sys.stderr else []
        self.stream = EventStream([*sinks, self._write_event] if self._events else sinks)

    @classmethod
    def of(cls, args: argparse.Namespace) -> CommandOutput:
        """From parsed options."""
        output = cls(json=args.json, quiet=args.quiet, verbose=args.verbose, colour=args.color, events=args.events)
        given = (("-n", "name"), ("-p", "prefix"), ("--python", "python"))
        output.target = tuple(
            word for flag, name in given if (value := getattr(args, name, None)) for word in (flag, value)
        )
        return output

    def document(self, document: object, lines: Sequence[Line]) -> None:
        """Print `document` as JSON under ``--json``, else `lines`."""
        self._print(document, self._out_style.text(lines))

    def text(self, document: object, lines: Sequence[str]) -> None:
        """Print `document` as JSON under ``--json``, else `lines` of the text of a file, whose tabs stay."""
        self._print(document, list(map(plain, lines)))

    # the text of a file has lines already; a document is rendered to them first
    def _print(self, document: object, lines: Sequence[str]) -> None:
        self.narrator.close()
        text = _json(self._marked(document)) if self.json else "\n".join(lines)
        try:
            write(sys.stdout, text + "\n")
        except OSError as error:
            # Otherwise Python would try to flush it once more at exit and replace the exit code.
            discard(sys.stdout)
            raise EnvmedicError(
                "The result could not be written to standard output",
                cause=error.strerror,
                hint="Send it somewhere with room; the command itself has ended",
                environment=_environment_after(document),
            ) from error

    def narrate(self, text: str) -> None:
        """Print lines of text on stderr, unless quiet or events go there."""
        self.narrate_lines(list(map(line, text.split("\n"))))

    def narrate_lines(self, lines: Sequence[Line]) -> None:
        """Print `lines` on stderr, unless quiet or events go there."""
        self.narrator.close()
        if lines and not self.quiet and self._events is not sys.stderr:
            write(sys.stderr, "\n".join(self._err_style.text(lines)) + "\n")

    def done(self, document: object, lines: Sequence[Line]) -> None:
        """Print what was done, as `document` does; quiet needs no more than the exit code."""
        if self.json or not self.quiet:
            self.document(document, lines)

    def insist(self, lines: Sequence[Line]) -> None:
        """Print `lines` on stderr also when quiet."""
        self.narrator.close()
        write(sys.stderr, "\n".join(self._err_style.text(lines)) + "\n")

    def report(self, document: object, lines: Sequence[Line], file: str | None) -> None:
        """Write `document` to `file`, or to stderr, and nothing to stdout: as JSON under ``--json`` or by its name."""
        self.narrator.close()
        document = self._marked(document)
        if file is None:
            text = _json(document) if self.json else "\n".join(self._err_style.text(lines))
            write(sys.stderr, text + "\n")
            return
        as_json = self.json or file.endswith(".json")
        text = _json(document) if as_json else "\n".join(Style(colour=False).text(lines))
        try:
            Path(file).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"The report {file} cannot be written", cause=error.strerror, hint="Name another file with --report"
            ) from error

    def _marked(self, document: Any) -> Any:
        """`document` with the interrupted transaction in it, where it is of an environment that has one."""
        if self.interrupted is None:
            return document
        # looked at by their fields: importing every document's module would take longer than most commands
        fields = getattr(document, "__struct_fields__", ())
        if "diagnoses" in fields:
            return replace(document, diagnoses=tuple(map(self._marked, document.diagnoses)))
        return replace(document, interrupted=self.interrupted) if "interrupted" in fields else document

    def error_beside(self, error: EnvmedicError) -> None:
        """Print `error` on stderr alone, for commands whose stdout belongs to the user's program."""
        self.narrator.close()
        write(sys.stderr, "\n".join(self._err_style.text(error_lines(error, self.target))) + "\n")

    def error(self, error: EnvmedicError) -> None:
        """Print `error`: as a document under ``--json``, and as text on stderr unless that would mix with events."""
        self.narrator.close()
        if self.json:
            write(sys.stdout, _json(error_document(error)) + "\n")
        if not (self.json and self._events is sys.stderr):
            write(sys.stderr, "\n".join(self._err_style.text(error_lines(error, self.target))) + "\n")

    def _write_event(self, event: Event) -> None:
        if self._events is not None:
            write(self._events, _json(event, indent=0) + "\n")


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


def _json(document: object, *, indent: int = 2) -> str:
    """JSON in which nothing acts on a terminal: beside C0, C1 controls and changes of direction are escaped."""
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", to_json(document, indent=indent))


def _tolerate_any_text(stream: TextIO) -> None:
    """Let a locale that lacks a character show its code instead of ending in an error, as stderr does."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors != WORDS:
        stream.reconfigure(errors="backslashreplace")


def _environment_after(document: object) -> str:
    return CHANGED if isinstance(document, Record) and document.environment != "unchanged" else UNCHANGED
