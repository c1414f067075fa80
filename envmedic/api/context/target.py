"""The environment of a command: its resolution from the user's words, and its two paths."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from envmedic.api.context.settings import NamedTarget
from envmedic.errors import EnvironmentBusy, NotAnEnvironment, RecoveryNeeded
from envmedic.linked_prefix import STORE, real_prefix


@dataclass(frozen=True)
class EnvironmentTarget:
    """An environment that a command works on."""

    prefix: Path
    """As the user named it, for messages and documents."""
    real: Path
    """Without symbolic links, see `linked_prefix`: the path that is exchanged, protected and observed."""

    @classmethod
    def of(cls, prefix: Path) -> EnvironmentTarget:
        """Return the target at `prefix`, which may be missing after a crash."""
        # resolved once for a command: a link that changes meanwhile must not make it work on two environments.
        return cls(prefix, real_prefix(prefix))


def find_prefix(target: NamedTarget, *, own: bool = False) -> Path:
    """Return the prefix of the named environment; reads only. With `own` it may be the one that envmedic runs from.

    Raises NotAnEnvironment, InputError, and RecoveryNeeded or EnvironmentBusy for a prefix that is missing in the
    middle of an exchange.
    """
    from envmedic.probe.prefix import targets

    try:
        return targets.resolve_prefix(name=target.name, prefix=target.prefix, python=target.python, own=own)
    except NotAnEnvironment:
        for prefix in _missing(target):
            from envmedic.engine.store.layout import Store
            from envmedic.engine.store.unsettled import require_no_exchange

            require_no_exchange(Store.of(prefix))
        raise


def find_prefix_or_missing(target: NamedTarget) -> Path:
    """Return the prefix of the named environment, or the place where an interrupted exchange left none.

    Raises NotAnEnvironment, InputError.
    """
    try:
        return find_prefix(target)
    except (EnvironmentBusy, RecoveryNeeded):
        return _missing(target)[0]


def _missing(target: NamedTarget) -> list[Path]:
    """The places of the named environment that hold nothing while envmedic has a store beside them."""
    from envmedic.probe.prefix import targets

    places = targets.places(name=target.name, prefix=target.prefix, python=target.python)
    return [place for place in places if not os.path.lexists(os.path.realpath(place)) and has_store(place)]


def has_store(prefix: Path) -> bool:
    """Whether envmedic has a store beside the environment."""
    # os.path: a parent that cannot be searched is no store, and no error here
    return os.path.isdir(real_prefix(prefix).parent / STORE)
