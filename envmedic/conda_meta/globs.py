"""Patterns of match specs, in time that grows with the text alone: whoever makes a package writes both sides of them."""

from __future__ import annotations


def globs(pattern: str, value: str) -> bool:
    """Whether `value` is as `pattern` says, in which ``*`` stands for anything."""
    first, *others = pattern.split("*")
    if not others:
        return value == pattern
    last = others.pop()
    if not value.startswith(first) or len(value) < len(first) + len(last):
        return False
    place, end = len(first), len(value) - len(last)
    for part in others:
        place = value.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return value.endswith(last)


def is_expression(pattern: str) -> bool:
    """Whether conda takes it for a regular expression."""
    return pattern.startswith("^") and pattern.endswith("$")


def expression(pattern: str, value: str) -> bool:
    """Whether the regular expression `pattern` matches at the beginning of `value`. Raises ValueError when it is none."""
    import re2  # noqa: PLC0415  # few specs have one

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.match(pattern, value, options) is not None
    except re2.error as error:
        raise ValueError(f"{pattern!r} is no regular expression that is read here: {error}") from error
