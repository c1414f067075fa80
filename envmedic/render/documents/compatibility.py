"""The answer of ``envmedic check``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from envmedic.model.answers.compatibility import Compatibility, Verdict, WheelsTogether
from envmedic.render.changes import change_lines
from envmedic.render.text import Line, TextPart, Tone, joined, line, part, section

_WORDS: dict[Verdict, tuple[str, Tone]] = {
    "works": ("yes", "good"),
    "works-with-changes": ("yes, with changes", "good"),
    "needs-build": ("not as a wheel", "warn"),
    "does-not-work": ("no", "bad"),
}
_SIGNS = {"for": "+", "against": "-", "note": " "}


def compatibility_lines(found: Compatibility) -> list[Line]:
    """The answer first, then what would change or break, the reasons, and the command to carry it out."""
    lines = [
        joined(part(*_WORDS[found.verdict]), f"  {', '.join(found.requirements)}: {found.summary}"),
        *section("It would change", change_lines(found.changes)),
        *section("It would break", [line(f"  - {text}") for text in found.breaks]),
        *section("Why", [line(f"  {_SIGNS[item.speaks]} {item.text}") for item in found.considerations]),
    ]
    if found.together is not None:
        lines += section("Instead", [line(f"  {text}") for text in _instead(found.together)])
    if found.command:
        lines += [line(""), line("Nothing has been changed. By hand:", "bold")]
        lines.append((TextPart("  "), part(shlex.join(found.command), "command")))
    return lines


def _instead(found: WheelsTogether) -> Iterator[str]:
    if found.without_wheel:
        yield f"leave out or build: {', '.join(found.without_wheel)}"
    if found.nearest:
        yield f"take the nearest set that has wheels: {' '.join(found.nearest)}"
    if found.build is not None:
        yield found.build
