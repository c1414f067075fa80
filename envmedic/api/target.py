"""Which environment is meant."""

from __future__ import annotations

import os
from pathlib import Path

from envmedic.api.settings import Settings, Target
from envmedic.errors import NotAnEnvironment
from envmedic.model.record import Record
from envmedic.owner import STORE
from envmedic.probe import targets


def find_prefix(settings: Settings, target: Target) -> Path:
    """The environment meant. An interrupted transaction on it is settled first. Raises NotAnEnvironment, InputError."""
    try:
        prefix = targets.resolve_prefix(name=target.name, prefix=target.prefix, python=target.python)
    except NotAnEnvironment:
        # a crash between the two renames of an exchange leaves no prefix until it is settled
        if target.prefix is None or not _settled(settings, Path(target.prefix)):
            raise
        return targets.resolve_prefix(name=None, prefix=target.prefix, python=None)
    _settled(settings, prefix)
    return prefix


def _settled(settings: Settings, prefix: Path) -> tuple[Record, ...]:
    """The transactions that were interrupted there, now settled."""
    if not interrupted(prefix):
        return ()
    if settings.ahead is not None:
        settings.ahead.close()  # it has seen what is about to change
    from envmedic.api.generations import settle  # noqa: PLC0415  # the whole engine, for the few that need it

    return settle(settings, prefix)


def interrupted(prefix: Path) -> bool:
    """Whether a crash left something to settle there."""
    if not (Path(os.path.realpath(prefix)).parent / STORE).is_dir():
        return False
    from envmedic.engine import journal  # noqa: PLC0415  # most environments were never repaired
    from envmedic.engine.layout import Store  # noqa: PLC0415

    return journal.interrupted(Store.of(prefix))
