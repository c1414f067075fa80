"""Which environment is meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from envmedic.api.context.settings import NamedTarget, Settings
from envmedic.errors import NotAnEnvironment
from envmedic.model.record import Record
from envmedic.owner import STORE
from envmedic.probe.prefix import targets

if TYPE_CHECKING:
    from envmedic.engine.store.layout import Store


def find_prefix(settings: Settings, target: NamedTarget) -> Path:
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
    """The transactions that were interrupted there, now settled; those of another user are left to them."""
    store = _store(prefix)
    if store is not None and store.closed:
        from envmedic.model.events import Notice  # noqa: PLC0415

        message = f"What envmedic did here before is not known: {store.root} belongs to another user"
        settings.stream.emit(Notice(code="another-users", message=message, level="warning"))
        return ()
    if not interrupted(prefix):
        return ()
    if settings.ahead is not None:
        settings.ahead.close()  # it has seen what is about to change
    from envmedic.api.generations import settle  # noqa: PLC0415  # the whole engine, for the few that need it

    return settle(settings, prefix)


def interrupted(prefix: Path) -> bool:
    """Whether a crash left something to settle there. Raises PreflightError where only another user may look."""
    store = _store(prefix)
    if store is None:
        return False
    from envmedic.engine.store import journal  # noqa: PLC0415

    return journal.interrupted(store)


def _store(prefix: Path) -> Store | None:
    """What envmedic keeps beside the environment, None where there is nothing."""
    if not os.path.isdir(os.path.join(os.path.dirname(os.path.realpath(prefix)), STORE)):  # noqa: PTH112, PTH118, PTH120  # never raises
        return None
    from envmedic.engine.store.layout import Store  # noqa: PLC0415  # most environments were never repaired

    return Store.of(prefix)
