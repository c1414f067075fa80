"""Lines as text with terminal escapes, and readable figures."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TextIO

from envmedic.render.text import Line, Tone, bare

_CODES: dict[Tone, str] = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "bold": "1", "accent": "36"}
_UNITS = ("B", "kB", "MB", "GB", "TB")
_UNIT_STEP = 1000
_MINUTE_S = 60
_TENTHS_BELOW_S = 10


def wants_colour(stream: TextIO, choice: str = "auto") -> bool:
    """Whether to colour `stream`; NO_COLOR, FORCE_COLOR, TERM and whether it is a terminal decide, in this order."""
    if choice != "auto":
        return choice == "always"
    # https://no-color.org: any value but the empty one
    if os.environ.get("NO_COLOR"):
        return False
    # for logs of CI and for `less -R`, where stdout is no terminal
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM", "") not in {"", "dumb", "unknown"} and stream.isatty()


class Style:
    """Printed form of lines, with or without escapes for their tones. No meaning depends on colour alone."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def printed(self, line: Line) -> str:
        """`line` as it is printed; no other escapes than those of its tones are in it."""
        if not self._colour:
            return plain(bare(line))
        # escapes are added after `plain`, which would replace them
        pieces = ((plain(text), _CODES.get(tone)) for text, tone in line)
        return "".join(f"\x1b[{code}m{text}\x1b[0m" if code else text for text, code in pieces)

    def text(self, lines: Iterable[Line]) -> list[str]:
        """Each of `lines` as it is printed."""
        return [self.printed(line) for line in lines]


def size(count: int | None) -> str:
    """Bytes in decimal units, ``?`` when unknown."""
    if count is None:
        return "?"
    value = float(count)
    for unit in _UNITS:
        if value < _UNIT_STEP or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= _UNIT_STEP
    raise AssertionError


def duration(seconds: float) -> str:
    """Seconds as ``0.4 s``, ``12 s`` or ``3 min 05 s``."""
    if seconds < _TENTHS_BELOW_S:
        return f"{seconds:.1f} s"
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), _MINUTE_S)
    return f"{minutes} min {rest:02d} s"


def plain(text: str) -> str:
    """`text` without control characters, so that a log's escapes cannot act on the terminal; tabs stay."""
    # a second guard after `visible`: a bare TextPart may hold text that never went through it
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
