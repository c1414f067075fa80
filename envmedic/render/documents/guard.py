"""The answer of ``envmedic guard``."""

from __future__ import annotations

import shlex

from envmedic.model.answers.guard import Guard, GuardVerdict
from envmedic.render.changes import change_lines
from envmedic.render.text import Line, Tone, joined, line, part, section

_WORDS: dict[GuardVerdict, tuple[str, Tone]] = {
    "harmless": ("no harm", "good"),
    "undoes-repair": ("undoes the repair", "bad"),
    "breaks": ("breaks", "bad"),
    "fails": ("fails", "warn"),
    "unanswered": ("not known", "warn"),
}


def guard_lines(found: Guard) -> list[Line]:
    """The answer first, then what would change, and everything that speaks against it."""
    return [
        joined(part(*_WORDS[found.verdict]), f"  {shlex.join(found.command)}: {found.summary}"),
        *section("It would change", change_lines(found.changes)),
        *section("Against it", [line(f"  - {item.text} ({item.source})") for item in found.harms]),
        *(line(f"note: {text}") for text in found.notes),
        line(""),
        line("Nothing has been changed."),
    ]
