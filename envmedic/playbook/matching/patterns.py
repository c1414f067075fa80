"""Compilation of signature patterns by RE2, with explanations of its refusals.

RE2 and not `re`: patterns and logs come from strangers, and RE2 searches in linear time.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

MAX_MEMORY_BYTES = 16 << 20
"""RE2's memory budget for one program with its automaton; patterns stay far below."""
_LITERALS_MEMORY_BYTES = 64 << 20

_UNSUPPORTED = (
    (re.compile(r"\(\?[=!]"), "look-ahead is not in RE2 syntax; write what must be there, or two signatures"),
    (re.compile(r"\(\?<[=!]"), "look-behind is not in RE2 syntax; write what stands before as part of the pattern"),
    (re.compile(r"\(\?P="), "back-references are not in RE2 syntax"),
    (re.compile(r"\\[1-9]"), "back-references are not in RE2 syntax"),
    (re.compile(r"\(\?>|[*+?}]\+"), "atomic groups and possessive repetition are not in RE2 syntax, and not needed"),
)


class PatternRefused(ValueError):
    """RE2 cannot compile the pattern; the message gives the reason."""


def options() -> Any:
    """Return the options of every signature: UTF-8, no output on stderr, bounded memory."""
    import re2

    chosen = re2.Options()
    chosen.log_errors = False
    chosen.max_mem = MAX_MEMORY_BYTES
    chosen.case_sensitive = False
    return chosen


def bytewise() -> Any:
    """Return the options of the one program of all literals."""
    import re2

    chosen = options()
    # squeezed text is no valid UTF-8 any more, so bytes are matched as Latin-1
    chosen.encoding = re2.Options.Encoding.LATIN1
    chosen.never_capture = True
    chosen.max_mem = _LITERALS_MEMORY_BYTES
    return chosen


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Any:
    """Return the RE2 program of `pattern`, for bytes. Raises `PatternRefused`."""
    import re2

    try:
        return re2.compile(pattern.encode(), options())
    except re2.error as error:
        reason = error.args[0] if error.args else "unknown reason"
        raise PatternRefused(_worded(pattern, reason.decode() if isinstance(reason, bytes) else str(reason))) from error


@lru_cache(maxsize=4096)
def any_by_line(patterns: tuple[str, ...]) -> Any | None:
    """Return one program for all `patterns` over several lines; it may also find lines that none matches.

    None if RE2 refuses it as too large, or if the patterns cannot be combined.
    """
    import re2

    # \Q quotes up to \E or the end, which would be that of the combined pattern
    if any("\\Q" in pattern for pattern in patterns):
        return None
    chosen = options()
    chosen.never_capture = True
    # each pattern is written for one line: the ends of its text are ends of lines here. An escaped backslash is
    # rewritten first, or `\\A` would be taken for the anchor.
    anchored = (item.replace("\\\\", "\\x5c").replace("\\A", "^").replace("\\z", "$") for item in patterns)
    try:
        return re2.compile("|".join(f"(?m:{item})" for item in anchored).encode(), chosen)
    except re2.error:
        return None


def _worded(pattern: str, reason: str) -> str:
    # a reason with "(?P" does not say which construct RE2 met, so the pattern itself is searched then
    explained = next((words for shape, words in _UNSUPPORTED if shape.search(reason)), None)
    if explained is None and "(?P" in reason:
        explained = next((words for shape, words in _UNSUPPORTED if shape.search(pattern)), None)
    return f"RE2 refuses the pattern: {reason}" + (f"; {explained}" if explained else "")


def group_numbers(pattern: str) -> dict[str, int]:
    """Return the named groups of `pattern` with their numbers; empty if it does not compile."""
    try:
        names = compiled(pattern).groupindex
    except PatternRefused:
        return {}
    return {name.decode() if isinstance(name, bytes) else name: number for name, number in names.items()}


def group_names(pattern: str) -> frozenset[str]:
    """Return the names of the groups of `pattern`; empty if it does not compile."""
    return frozenset(group_numbers(pattern))
