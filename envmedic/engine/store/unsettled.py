"""Unsettled transactions as readers see them: nothing is locked for long, settled or written here."""

from __future__ import annotations

import os
import shlex

from envmedic.engine.store import journal, lock
from envmedic.engine.store.layout import Store
from envmedic.errors import RECOVERABLE, EnvironmentBusy, RecoveryNeeded


def unsettled(store: Store) -> str | None:
    """The id of the newest transaction that has not ended, None if all have.

    Raises RecoveryNeeded for a journal that cannot be read, PreflightError if the store is closed to this user.
    """
    return next((item.transaction for item in reversed(store.transactions()) if journal.unsettled(item)), None)


def require_no_exchange(store: Store) -> None:
    """Raise RecoveryNeeded if the prefix is missing because an exchange by renames stopped halfway.

    Raises EnvironmentBusy in the moment in which another process has renamed it.
    """
    if os.path.lexists(store.prefix) or not any(os.path.lexists(item.displaced) for item in store.transactions()):
        return
    holder = lock.holder(store)
    if holder is not None:
        raise EnvironmentBusy(
            f"{store.prefix} is being exchanged",
            cause=f"Process {holder} works on it",
            hint="Try again when it has finished",
        )
    raise RecoveryNeeded(
        f"{store.prefix} is missing: its exchange was interrupted",
        cause="Both trees, with and without the repair, are whole and beside it",
        hint=f"Run `{recover_command(store.prefix)}`, which puts one of them there",
        environment=RECOVERABLE,
    )


def recover_command(prefix: os.PathLike[str]) -> str:
    """The command that settles the transactions on the environment at `prefix`."""
    return shlex.join(["envmedic", "recover", "-p", os.fspath(prefix)])
