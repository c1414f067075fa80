"""The environment of a command: its resolution from the user's words, and its two paths."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from envmedic.api.context.settings import NamedTarget


@dataclass(frozen=True)
class EnvironmentTarget:
    """An environment that a command works on."""

    prefix: Path
    """As the user named it, for messages and documents."""
    real: Path
    """Without symbolic links: the path that is exchanged, protected and observed."""

    @classmethod
    def of(cls, prefix: Path) -> EnvironmentTarget:
        """Return the target at `prefix`, which may be missing after a crash."""
        # resolved once for a command: a link that changes meanwhile must not make it work on two environments.
        # os.path, since Path.resolve raises RuntimeError for circular links before Python 3.13
        return cls(prefix, Path(os.path.realpath(prefix)))


def find_prefix(target: NamedTarget) -> Path:
    """Return the prefix of the named environment. Raises NotAnEnvironment, InputError."""
    from envmedic.probe.prefix import targets

    return targets.resolve_prefix(name=target.name, prefix=target.prefix, python=target.python)
