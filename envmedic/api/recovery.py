"""Recovery: interrupted transactions of an environment are settled, before any other command works on it."""

from __future__ import annotations

import os
from functools import cache, partial
from pathlib import Path

from envmedic.api.context.settings import NamedTarget, Settings
from envmedic.api.context.target import find_prefix
from envmedic.errors import NotAnEnvironment
from envmedic.model.events import Notice
from envmedic.model.record import Record, Recovery
from envmedic.owner import STORE


def settled_prefix(settings: Settings, target: NamedTarget) -> Path:
    """Return the prefix of the environment meant, after `settle_first`. Raises NotAnEnvironment, InputError."""
    try:
        prefix = find_prefix(target)
    except NotAnEnvironment:
        # a crash between the two renames of an exchange leaves no prefix until it is settled
        if target.prefix is None or not settle_first(settings, Path(target.prefix)):
            raise
        return find_prefix(target)
    settle_first(settings, prefix)
    return prefix


def settle_first(settings: Settings, prefix: Path) -> tuple[Record, ...]:
    """Settle the interrupted transactions of the environment at `prefix`, with a notice of each; return their records.

    Changes the disk where there are any. Those of another user are left to them.
    """
    if not _has_store(prefix):
        return ()
    from envmedic.engine.store.layout import Store

    store = Store.of(prefix)
    if store.closed:
        message = f"What envmedic did here before is not known: {store.root} belongs to another user"
        settings.stream.emit(Notice(code="another-users", message=message, level="warning"))
        return ()
    records = _recover(settings, prefix) if _interrupted(prefix) else ()
    for record in records:
        message = f"recovered the interrupted transaction {record.transaction}: environment {record.environment}"
        settings.stream.emit(Notice(code="recovered", message=message, level="warning"))
    return records


def recover(settings: Settings, target: NamedTarget) -> Recovery:
    """Settle what a crash interrupted; the prefix itself may be missing. Raises NotAnEnvironment, InputError."""
    if target.prefix is not None and not os.path.lexists(target.prefix) and _interrupted(Path(target.prefix)):
        prefix = Path(target.prefix).absolute()
    else:
        prefix = find_prefix(target)
    return Recovery(prefix=str(prefix), settled=_recover(settings, prefix))


def _has_store(prefix: Path) -> bool:
    """Whether envmedic keeps anything beside the environment; most were never repaired."""
    return os.path.isdir(os.path.join(os.path.dirname(os.path.realpath(prefix)), STORE))  # never raises


def _interrupted(prefix: Path) -> bool:
    """Whether a crash left something to settle there. Raises PreflightError where only another user may look."""
    from envmedic.engine.store import journal
    from envmedic.engine.store.layout import Store

    return _has_store(prefix) and journal.interrupted(Store.of(prefix))


def _recover(settings: Settings, prefix: Path) -> tuple[Record, ...]:
    from envmedic.api.context.wiring import check_runner, engine_ports, installer_of
    from envmedic.engine.generations import recovery

    installer = cache(partial(installer_of, settings))
    real = Path(os.path.realpath(prefix))
    ports = engine_ports(settings, installer, prefix=real, confirm=lambda _plan: False)
    checks = check_runner(installer, settings, prefix=real)
    return recovery.recover(prefix, ports=ports, checks=checks, stream=settings.stream)
