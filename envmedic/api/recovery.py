"""Use case ``recover``, and the recovery of interrupted transactions before every other command."""

from __future__ import annotations

import os
from pathlib import Path

from envmedic.api.context.settings import NamedTarget, Settings
from envmedic.api.context.target import EnvironmentTarget, find_prefix
from envmedic.errors import NotAnEnvironment
from envmedic.model.events import Notice
from envmedic.model.record import Record, Recovery
from envmedic.owner import STORE


def settled_prefix(settings: Settings, target: NamedTarget) -> Path:
    """Return the prefix of the named environment, after `settle_first`. Raises NotAnEnvironment, InputError."""
    try:
        prefix = find_prefix(target)
    except NotAnEnvironment:
        # a crash between the two renames of an exchange leaves no prefix until recovery; only a path can name it then
        if target.prefix is None or not settle_first(settings, Path(target.prefix)):
            raise
        return find_prefix(target)
    settle_first(settings, prefix)
    return prefix


def settle_first(settings: Settings, prefix: Path) -> tuple[Record, ...]:
    """Recover the interrupted transactions of the environment at `prefix`, and return their records.

    Changes the disk if there are any, and emits a notice for each. Those of another user stay as they are.
    """
    # without a store the journal's code is not even imported: most environments were never repaired
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
    """Recover interrupted transactions; the prefix itself may be missing. Raises NotAnEnvironment, InputError."""
    if target.prefix is not None and not os.path.lexists(target.prefix) and _interrupted(Path(target.prefix)):
        prefix = Path(target.prefix).absolute()
    else:
        prefix = find_prefix(target)
    return Recovery(prefix=str(prefix), settled=_recover(settings, prefix))


def _has_store(prefix: Path) -> bool:
    """Whether envmedic has a store next to the environment."""
    return os.path.isdir(os.path.join(os.path.dirname(os.path.realpath(prefix)), STORE))


def _interrupted(prefix: Path) -> bool:
    """Whether a crash interrupted a transaction. Raises PreflightError if only another user may read the store."""
    from envmedic.engine.store import journal
    from envmedic.engine.store.layout import Store

    return _has_store(prefix) and journal.interrupted(Store.of(prefix))


def _recover(settings: Settings, prefix: Path) -> tuple[Record, ...]:
    from envmedic.api.context.wiring import check_runner, engine_ports
    from envmedic.engine.generations import recovery

    target = EnvironmentTarget.of(prefix)
    # recovery only completes or reverts what was agreed to; a question that it should not ask is answered with no
    ports = engine_ports(settings, target, confirm=lambda _plan: False)
    return recovery.recover(prefix, ports=ports, checks=check_runner(settings, target), stream=settings.stream)
