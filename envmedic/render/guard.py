"""The answer of ``envmedic guard`` as text."""

from __future__ import annotations

import shlex

from envmedic.model.answers.guard import Guard, GuardVerdict
from envmedic.render.plan import change_rows
from envmedic.render.style import Style, Tone, plain, table

_WORDS: dict[GuardVerdict, tuple[str, Tone]] = {
    "harmless": ("no harm", "good"),
    "undoes-repair": ("undoes the repair", "bad"),
    "breaks": ("breaks", "bad"),
    "fails": ("fails", "warn"),
    "unanswered": ("not known", "warn"),
}


def guard_lines(found: Guard, style: Style) -> list[str]:
    """The answer first, then what would change, and everything that speaks against it."""
    word, colour = _WORDS[found.verdict]
    lines = [f"{style(word, colour)}  {plain(shlex.join(found.command))}: {plain(found.summary)}"]
    if found.changes:
        lines += ["", style("It would change", "bold"), *table(change_rows(found.changes))]
    if found.harms:
        lines += ["", style("Against it", "bold")]
        lines += [f"  - {plain(item.text)} ({plain(item.source)})" for item in found.harms]
    lines += [f"note: {plain(text)}" for text in found.notes]
    return [*lines, "", "Nothing has been changed."]
