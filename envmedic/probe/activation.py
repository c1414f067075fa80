"""The variables that an environment keeps for the shells that activate it."""

from __future__ import annotations

from pathlib import Path

from envmedic import kept
from envmedic.model.facts import KeptVariable


def observe(prefix: Path) -> tuple[KeptVariable, ...]:
    """What activating the environment at `prefix` sets and unsets; () where its files cannot be read."""
    try:
        found = kept.variables(prefix)
    except (OSError, ValueError):
        return ()
    where = kept.source(prefix)
    return tuple(KeptVariable(name=name, value=value, source=where) for name, value in found.items())
