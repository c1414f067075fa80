"""Help for the part that has the focus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from envmedic.tui.text import Line, TextPart, line, padded, width

GENERAL = (
    "Tab goes to the next part, Shift+Tab to the one before. Nothing is changed in an environment before you say so: a "
    "plan is shown first, it is carried out in a clone, and undo brings the old environment back."
)


class Key(NamedTuple):
    """A key that works here."""

    key: str
    what: str


def help_lines(about: str, keys: Iterable[Key]) -> list[Line]:
    """What the part is, its keys, and what holds everywhere."""
    rows = list(dict.fromkeys(keys))
    cells = max((width(row.key) for row in rows), default=0)
    listed = [(TextPart(padded(row.key, cells) + "  ", "accent"), TextPart(row.what)) for row in rows]
    return [line(about or "This part has no help of its own."), line(""), *listed, line(""), line(GENERAL, "dim")]
