"""Placeholders in the texts of a playbook: ``{group}``, ``{fact}`` and ``{variable}``, nothing else.

Doubled braces stand for themselves, as in format strings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from envmedic.model.playbook import FactValue

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
UNKNOWN = "unknown"
"""What stands in a text for a value that was not observed."""


def placeholders(text: str) -> tuple[str, ...]:
    """Names between braces, in order of first appearance."""
    names = (match.group(1) for match in _PLACEHOLDER.finditer(text))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def sole_placeholder(text: str) -> str | None:
    """The name between the braces where `text` is one placeholder and nothing else."""
    match = _PLACEHOLDER.fullmatch(text)
    return match.group(1) if match is not None else None


def fill(text: str, values: Mapping[str, FactValue]) -> str:
    """`text` with each placeholder replaced by its value; one without a value becomes ``unknown``."""

    def replacement(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group(0)[0]
        return shown(values.get(name))

    return _PLACEHOLDER.sub(replacement, text)


def shown(value: FactValue) -> str:
    """A fact's value as people read it."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, tuple) else str(value)
