"""Lock formats in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from envmedic.locks.formats import LOCK_FORMATS
from envmedic.render.cells import end
from envmedic.render.text import Line, TextPart, line

INCOMPLETE: Final = "incomplete"
"""The choice below the formats."""
_GAPS: Final = "also write locks that lack entries, and name these in them"


def tick_lines(item: str, *, ticked: bool, cells: int) -> list[Line]:
    """A format, or the choice below them, with its tick."""
    form = next((form for form in LOCK_FORMATS.values() if form.name == item), None)
    label, about = (f"{form.filename:<17} ", form.about) if form is not None else ("", _GAPS)
    mark = "[x] " if ticked else "[ ] "
    text = end(label + about, max(cells - len(mark), 4))
    return [(TextPart(mark, "good" if ticked else "plain"), TextPart(text, "bold" if ticked else "plain"))]


def replaced_lines(names: Sequence[str]) -> list[Line]:
    """Existing files that would be overwritten."""
    return [line(f"! replaces {', '.join(names)}", "warn")] if names else []
