"""Signature patterns as RE2 programs, with RE2's refusals in words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

MAX_MEMORY_BYTES = 16 << 20
"""RE2's budget for one program and its automaton; patterns stay far below."""
_LITERALS_MEMORY_BYTES = 64 << 20

_UNSUPPORTED = (
    (re.compile(r"\(\?[=!]"), "look-ahead is not in RE2 syntax; write what must be there, or two signatures"),
    (re.compile(r"\(\?<[=!]"), "look-behind is not in RE2 syntax; write what stands before as part of the pattern"),
    (re.compile(r"\(\?P="), "back-references are not in RE2 syntax"),
    (re.compile(r"\\[1-9]"), "back-references are not in RE2 syntax"),
    (re.compile(r"\(\?>|[*+?}]\+"), "atomic groups and possessive repetition are not in RE2 syntax, and not needed"),
)


class PatternRefused(ValueError):
    """RE2 cannot compile the pattern; the text says why."""


def options() -> Any:
    """Options under which every signature is compiled: UTF-8, nothing on stderr, bounded memory."""
    import re2

    chosen = re2.Options()
    chosen.log_errors = False
    chosen.max_mem = MAX_MEMORY_BYTES
    return chosen


def bytewise() -> Any:
    """Options for one program of thousands of literals, which are bytes rather than text."""
    import re2

    chosen = options()
    chosen.encoding = re2.Options.Encoding.LATIN1
    chosen.never_capture = True
    chosen.max_mem = _LITERALS_MEMORY_BYTES
    return chosen


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Any:
    """The RE2 program of `pattern`, for searching bytes. Raises `PatternRefused`."""
    import re2

    try:
        return re2.compile(pattern.encode(), options())
    except re2.error as error:
        reason = error.args[0] if error.args else "unknown reason"
        raise PatternRefused(_worded(pattern, reason.decode() if isinstance(reason, bytes) else str(reason))) from error


@lru_cache(maxsize=4096)
def any_by_line(patterns: tuple[str, ...]) -> Any | None:
    """A program that finds something in lines one of which one of `patterns` matches, and perhaps in others.

    None where RE2 refuses it as too large, or where the patterns cannot be written beside each other.
    """
    import re2

    if any("\\Q" in pattern for pattern in patterns):  # without an end it would quote the patterns after it too
        return None
    chosen = options()
    chosen.never_capture = True
    # the ends of the text become ends of lines
    anchored = (item.replace("\\\\", "\\x5c").replace("\\A", "^").replace("\\z", "$") for item in patterns)
    try:
        return re2.compile("|".join(f"(?m:{item})" for item in anchored).encode(), chosen)
    except re2.error:
        return None


def _worded(pattern: str, reason: str) -> str:
    explained = next((words for shape, words in _UNSUPPORTED if shape.search(reason)), None)
    if explained is None and "(?P" in reason:
        explained = next((words for shape, words in _UNSUPPORTED if shape.search(pattern)), None)
    return f"RE2 refuses the pattern: {reason}" + (f"; {explained}" if explained else "")


def group_numbers(pattern: str) -> dict[str, int]:
    """The named groups of `pattern` with their numbers, none when it does not compile."""
    try:
        names = compiled(pattern).groupindex
    except PatternRefused:
        return {}
    return {name.decode() if isinstance(name, bytes) else name: number for name, number in names.items()}


def group_names(pattern: str) -> frozenset[str]:
    """Names of the groups of `pattern`, empty when it does not compile."""
    return frozenset(group_numbers(pattern))
