"""Templates in the texts of a playbook: placeholders ``{group}``, ``{fact}`` and ``{variable}``.

Doubled braces are literal braces, as in format strings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from envmedic.model.playbook import FactValue

# not str.format: names contain dots and hyphens, and `{x.__class__}` of an untrusted playbook would be evaluated
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
UNKNOWN = "unknown"
"""Text for a value that was not observed."""


def placeholders(text: str) -> tuple[str, ...]:
    """Names between braces, in order of first appearance."""
    names = (match.group(1) for match in _PLACEHOLDER.finditer(text))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def sole_placeholder(text: str) -> str | None:
    """Return the name in `text` if that is exactly one placeholder, else None."""
    match = _PLACEHOLDER.fullmatch(text)
    return match.group(1) if match is not None else None


def fill(text: str, values: Mapping[str, FactValue]) -> str:
    """Return `text` with each placeholder replaced by its value, or by ``unknown`` without one."""

    def replacement(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group(0)[0]
        return shown(values.get(name))

    return _PLACEHOLDER.sub(replacement, text)


def shown(value: FactValue) -> str:
    """Return a fact's value as text for people."""
    if value is None:
        return UNKNOWN
    # before numbers: a bool is an int
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, tuple) else str(value)
