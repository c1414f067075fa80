"""Which environment is meant."""

from __future__ import annotations

from pathlib import Path

from envmedic.api.context.settings import NamedTarget


def find_prefix(target: NamedTarget) -> Path:
    """Return the prefix of the environment meant. Raises NotAnEnvironment, InputError."""
    from envmedic.probe.prefix import targets

    return targets.resolve_prefix(name=target.name, prefix=target.prefix, python=target.python)
