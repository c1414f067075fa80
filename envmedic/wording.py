"""Words for people: numbers with their nouns, and differences of texts."""

from __future__ import annotations

import difflib

_AROUND = 2
"""Unchanged lines that are shown around a change."""


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, of which the plural is `many`, by default with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def unified(name: str, before: str, after: str) -> str:
    """Return the difference of two texts as a unified diff, without time stamps; empty where they are equal."""
    return "".join(difflib.unified_diff(_lines(before), _lines(after), name, name, n=_AROUND))


def _lines(text: str) -> list[str]:
    return [line if line.endswith("\n") else f"{line}\n" for line in text.splitlines(keepends=True)]
