"""Size and depth limits for untrusted input, checked before it is parsed or walked.

A YAML text of a few lines can stand for billions of values by its aliases; a marker of a requirement can nest deeper
than Python calls itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

MOST = 2_000_000
"""Values; a lock of ten thousand packages for four platforms has half of that."""
DEEPEST = 100
"""Lists and tables within each other."""
_DEEPEST_MARKER = 20
"""Parentheses within each other; real markers have two."""
_SHOWN = 60
_MOST_BLANKS = 16
_BLANKS = re.compile(rf"[^\S\n]{{{_MOST_BLANKS},}}")


def require(value: object, most: int = MOST) -> None:
    """Raise ValueError where `value`, written out, has more than `most` values, or nests deeper than `DEEPEST`.

    Takes time by the distinct values, however often each is meant.
    """
    _measured(value, 0, most, {})


def requirement(text: str) -> str:
    """`text`, or its beginning, which is no requirement then, where its parentheses nest too deeply to be read."""
    depth = deepest = 0
    for character in text if text.count("(") > _DEEPEST_MARKER else "":
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return text if deepest <= _DEEPEST_MARKER else f"{text[:_SHOWN]} …"


def parsed(text: str) -> Requirement:
    """The requirement that `text` is. Raises InvalidRequirement where it is none, or nests too deeply to be read."""
    from packaging.requirements import Requirement  # noqa: PLC0415  # most that hold what they read need no parser

    return Requirement(requirement(text))


def settings(text: str) -> str:
    """The text of an INI file, long runs of blanks shortened: configparser's time grows with the square of a run."""
    return _BLANKS.sub(" " * _MOST_BLANKS, text)


def _measured(value: object, depth: int, most: int, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """How many values `value` has, and how deep they lie in each other; `known` has those that were measured."""
    if isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set):
        parts = list(value)
    else:
        return 1, 0
    if id(value) not in known:
        if depth > DEEPEST:
            raise ValueError(f"its lists and tables lie more than {DEEPEST} deep in each other, or contain themselves")
        measures = [_measured(part, depth + 1, most, known) for part in parts]
        known[id(value)] = 1 + sum(count for count, _ in measures), 1 + max((deep for _, deep in measures), default=0)
    count, deep = known[id(value)]
    if count > most or deep > DEEPEST:
        raise ValueError(f"written out it would have more than {most:,} values, or lie too deep: aliases multiply them")
    return count, deep
