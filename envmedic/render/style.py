"""Lines as text with terminal escapes, and readable figures."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from typing import TextIO

from envmedic.render.text import Line, Tone, bare
from envmedic.render.wrapping import wrapped

_CODES: dict[Tone, str] = {
    "good": "32", "bad": "1;31", "warn": "33", "dim": "2", "bold": "1", "accent": "36", "match": "1;31", "command": "1;36",
}  # fmt: skip
_WIDEST = 100
"""Columns of the longest line: longer ones are hard to read."""
_UNITS = ("B", "kB", "MB", "GB", "TB")
_UNIT_STEP = 1000
_MINUTE_S = 60
_TENTHS_BELOW_S = 10


def columns(stream: TextIO) -> int | None:
    """The width at which lines are broken on `stream`; None where it is no terminal, so that files have whole lines."""
    return min(shutil.get_terminal_size().columns, _WIDEST) if stream.isatty() else None


class Style:
    """Printed form of lines, with or without escapes for their tones. No meaning depends on colour alone."""

    def __init__(self, *, colour: bool, width: Callable[[], int | None] = lambda: None) -> None:
        """`width` is asked each time, since terminals are resized."""
        self._colour = colour
        self._width = width

    def printed(self, line: Line) -> str:
        """`line` as it is printed; no other escapes than those of its tones are in it."""
        if not self._colour:
            return plain(bare(line))
        # escapes are added after `plain`, which would replace them
        pieces = ((plain(text), _CODES.get(tone)) for text, tone in line)
        return "".join(f"\x1b[{code}m{text}\x1b[0m" if code else text for text, code in pieces)

    def text(self, lines: Iterable[Line]) -> list[str]:
        """`lines` as they are printed, broken at the width that there is."""
        width = self._width()
        rows = lines if width is None else (row for line in lines for row in wrapped(line, width))
        return list(map(self.printed, rows))


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
