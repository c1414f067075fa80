"""The answer of ``envmedic check`` as text."""

from __future__ import annotations

import shlex

from envmedic.model.answers.compatibility import Compatibility, Verdict
from envmedic.render.plan import change_rows
from envmedic.render.style import Style, Tone, plain, table

_WORDS: dict[Verdict, tuple[str, Tone]] = {
    "works": ("yes", "good"),
    "works-with-changes": ("yes, with changes", "good"),
    "needs-build": ("not as a wheel", "warn"),
    "does-not-work": ("no", "bad"),
}
_SIGNS = {"for": "+", "against": "-", "note": " "}


def compatibility_lines(found: Compatibility, style: Style) -> list[str]:
    """The answer first, then what would change or break, what it rests on, and how to go on."""
    word, colour = _WORDS[found.verdict]
    lines = [f"{style(word, colour)}  {', '.join(map(plain, found.requirements))}: {plain(found.summary)}"]
    if found.changes:
        lines += ["", style("It would change", "bold"), *table(change_rows(found.changes))]
    lines += _part("It would break", [f"  - {plain(text)}" for text in found.breaks], style)
    reasons = [f"  {_SIGNS[item.speaks]} {plain(item.text)}" for item in found.considerations]
    lines += _part("Why", reasons, style)
    if found.command:
        lines += ["", "Nothing has been changed. By hand:", f"  {plain(shlex.join(found.command))}"]
    return lines


def _part(title: str, lines: list[str], style: Style) -> list[str]:
    return ["", style(title, "bold"), *lines] if lines else []
