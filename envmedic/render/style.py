"""Colour that is never the only carrier of a meaning, and figures as people read them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Literal, TextIO

Tone = Literal["good", "bad", "warn", "dim", "bold", "accent"]
_CODES: dict[str, str] = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "bold": "1", "accent": "36"}
_OWN_ESCAPES = re.compile(f"(\x1b\\[(?:0|{'|'.join(_CODES.values())})m)")
_UNITS = ("B", "kB", "MB", "GB", "TB")


def wants_colour(stream: TextIO, choice: str = "auto") -> bool:
    """Whether to colour `stream`: NO_COLOR, then FORCE_COLOR, then a dumb TERM, then a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM", "") not in {"", "dumb", "unknown"} and stream.isatty()


class Style:
    """Wraps text in escapes, or leaves it alone."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def __call__(self, text: str, tone: Tone) -> str:
        """Return `text` in `tone`."""
        return f"\x1b[{_CODES[tone]}m{text}\x1b[0m" if self._colour else text

    def safe(self, text: str) -> str:
        """`text` with nothing left that acts on a terminal, but the escapes of this style."""
        if text.isprintable():
            return text
        if not self._colour:
            return plain(text)
        parts = _OWN_ESCAPES.split(text)
        return "".join(part if number % 2 else plain(part) for number, part in enumerate(parts))


def size(count: int | None) -> str:
    """Bytes in decimal units, ``?`` when unknown."""
    if count is None:
        return "?"
    value = float(count)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:  # noqa: PLR2004
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def duration(seconds: float) -> str:
    """Seconds as ``0.4 s``, ``12 s`` or ``3 min 05 s``."""
    if seconds < 10:  # noqa: PLR2004
        return f"{seconds:.1f} s"
    if seconds < 60:  # noqa: PLR2004
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def plain(text: str) -> str:
    """`text` without control characters, so that a log's escapes cannot act on the terminal."""
    return "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def shortened(text: str, length: int = 160) -> str:
    """`text` made plain and at most `length` characters long; JSON has all of it."""
    shown = plain(text)
    return shown if len(shown) <= length else shown[: length - 1] + "\N{HORIZONTAL ELLIPSIS}"


def table(rows: Sequence[tuple[str, ...]], *, indent: str = "  ") -> list[str]:
    """Left-aligned columns; the last column is not padded."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        lines.append((indent + "  ".join([*cells, row[-1]])).rstrip())
    return lines
