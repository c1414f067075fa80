"""Use case ``recover``, the recovery before commands that change an environment, and the notice of those that read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from envmedic.api.context.settings import NamedTarget, Settings
from envmedic.api.context.target import EnvironmentTarget, find_prefix, find_prefix_or_missing, has_store
from envmedic.errors import RecoveryNeeded
from envmedic.model.events import Notice
from envmedic.model.record import Record, Recovery

if TYPE_CHECKING:
    from envmedic.engine.store.layout import Store


def settled_prefix(settings: Settings, target: NamedTarget) -> Path:
    """Return the prefix of the named environment for a command that changes it, after `settle_first`.

    Raises NotAnEnvironment, InputError, and RecoveryNeeded where the prefix is missing in the middle of an exchange.
    """
    prefix = find_prefix(target)
    settle_first(settings, prefix)
    return prefix


def settle_first(settings: Settings, prefix: Path) -> tuple[Record, ...]:
    """Recover the interrupted transactions of the environment at `prefix`, and return their records.

    Changes the disk if there are any, and emits a notice for each. Those of another user stay as they are.
    """
    store = _readable_store(settings, prefix)
    if store is None:
        return ()
    from envmedic.engine.store import journal

    records = _recover(settings, prefix) if journal.interrupted(store) else ()
    for record in records:
        message = f"recovered the interrupted transaction {record.transaction}: environment {record.environment}"
        settings.stream.emit(Notice(code="recovered", message=message, level="warning"))
    return records


def tell_unsettled(settings: Settings, prefix: Path) -> str | None:
    """Tell of an unsettled transaction on the environment at `prefix`, for a command that only reads it.

    Emits a notice if there is one, and returns its id if it was interrupted: `envmedic recover` settles it. The
    journal of a transaction that still runs, or one that cannot be read, gives a notice alone. Changes nothing.
    """
    store = _readable_store(settings, prefix)
    if store is None:
        return None
    from envmedic.engine.store import lock, unsettled

    try:
        transaction = unsettled.unsettled(store)
    except RecoveryNeeded as error:
        message = f"{error.summary} ({error.cause}). {error.hint}"
        settings.stream.emit(Notice(code="journal-unreadable", message=message, level="warning"))
        return None
    if transaction is None:
        return None
    process = lock.holder(store)
    if process is not None:
        message = f"Another envmedic works on {prefix} (process {process}), which is read as it is now"
        settings.stream.emit(Notice(code="in-progress", message=message, level="warning"))
        return None
    message = f"interrupted: transaction {transaction}. To settle it, run `{unsettled.recover_command(prefix)}`"
    settings.stream.emit(Notice(code="interrupted", message=message, level="warning"))
    return transaction


def recover(settings: Settings, target: NamedTarget) -> Recovery:
    """Recover interrupted transactions; the prefix itself may be missing. Raises NotAnEnvironment, InputError."""
    prefix = find_prefix_or_missing(target)
    return Recovery(prefix=str(prefix), settled=_recover(settings, prefix))


def _readable_store(settings: Settings, prefix: Path) -> Store | None:
    """The store beside the environment; None without one, and with a notice for one that is closed to this user."""
    # without a store the journal's code is not even imported: most environments were never repaired
    if not has_store(prefix):
        return None
    from envmedic.engine.store.layout import Store

    store = Store.of(prefix)
    if not store.closed:
        return store
    message = f"What envmedic did here before is not known: {store.root} belongs to another user"
    settings.stream.emit(Notice(code="another-users", message=message, level="warning"))
    return None


def _recover(settings: Settings, prefix: Path) -> tuple[Record, ...]:
    from envmedic.api.context.wiring import check_runner, engine_ports
    from envmedic.engine.generations import recovery

    target = EnvironmentTarget.of(prefix)
    # recovery only completes or reverts what was agreed to; a question that it should not ask is answered with no
    ports = engine_ports(settings, target, confirm=lambda _plan: False)
    return recovery.recover(prefix, ports=ports, checks=check_runner(settings, target), stream=settings.stream)
