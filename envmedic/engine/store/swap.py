"""Swap the tree at the prefix with the kept tree of a transaction, in either direction, under the journal.

A file system without atomic exchange needs three renames. Between the first two the prefix does not exist; `mend`
completes or reverts them after a crash.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

from envmedic.engine.fs.exchange import exchange, rename_noreplace, sync_directory
from envmedic.engine.store.layout import TransactionDirectory
from envmedic.errors import RECOVERABLE, PreflightError, RecoveryNeeded
from envmedic.model.registries.modes import ExchangeMethod

Point = Callable[[str], None]
"""Called wherever a crash leaves a distinct state on disk; tests kill the process there."""


def no_point(_name: str) -> None:
    """The `Point` outside tests."""


def swap(prefix: Path, directory: TransactionDirectory, method: ExchangeMethod, point: Point = no_point) -> None:
    """Swap `prefix` with the transaction's tree; `sync` makes it durable.

    Raises PreflightError, with nothing changed, or RecoveryNeeded where renames stopped halfway and `mend` must follow.
    """
    refuse_link(prefix)  # a link may have been put there since the transaction resolved the prefix
    times = _times(prefix), _times(directory.tree)
    try:
        if method == "exchange":
            exchange(prefix, directory.tree)
        else:
            _rename_thrice(prefix, directory, point)
    except OSError as error:
        if os.path.lexists(directory.displaced):
            raise _halfway(prefix, error) from error
        raise PreflightError(
            f"{prefix} cannot be exchanged with its repaired copy",
            cause=f"{error.strerror} ({errno.errorcode.get(error.errno or 0, error.errno)})",
            hint="Check that nothing is mounted there and that its directory and its parent are writable",
        ) from error
    _keep_times(directory.tree, times[0])
    _keep_times(prefix, times[1])
    point("swapped")


def refuse_link(prefix: Path) -> None:
    """Refuse a link at the prefix: the exchange would swap the link itself, and keep it instead of the environment.

    Raises PreflightError.
    """
    if prefix.is_symlink():
        raise PreflightError(
            f"{prefix} was replaced by a symbolic link",
            cause=f"It leads to {prefix.readlink()}",
            hint="Put the environment back in its place, then run the same command again",
        )


def _times(root: Path) -> tuple[int, int] | None:
    """Access and modification time of `root`, in ns; None if it is missing, which the exchange reports."""
    try:
        status = root.lstat()
    except FileNotFoundError:
        return None
    return status.st_atime_ns, status.st_mtime_ns


def _keep_times(root: Path, times: tuple[int, int] | None) -> None:
    """Restore the times of a moved tree: XFS updates a directory's mtime when it gets another parent.

    Undo promises the old tree byte for byte, times included.
    """
    if times is None or root.lstat().st_mtime_ns == times[1]:
        return
    with contextlib.suppress(PermissionError):  # somebody else's directory, which this user may move but not date
        os.utime(root, ns=times)


def _halfway(prefix: Path, error: OSError) -> RecoveryNeeded:
    return RecoveryNeeded(
        f"The exchange of {prefix} stopped halfway",
        cause=str(error),
        hint="Mend that, then run `envmedic recover`; nothing is lost",
        environment=RECOVERABLE,
    )


def sync(prefix: Path, directory: TransactionDirectory) -> None:
    """Make the names on both sides of a swap durable. Raises OSError."""
    sync_directory(prefix.parent)
    sync_directory(directory.path)


def _rename_thrice(prefix: Path, directory: TransactionDirectory, point: Point) -> None:
    rename_noreplace(prefix, directory.displaced)
    try:
        point("prefix-displaced")
        rename_noreplace(directory.tree, prefix)
    except OSError:
        rename_noreplace(directory.displaced, prefix)  # no prefix at all is worse than any error
        raise
    point("prefix-replaced")
    rename_noreplace(directory.displaced, directory.tree)


def mend(prefix: Path, directory: TransactionDirectory) -> None:
    """Settle three renames that a crash interrupted: revert them after the first, complete them after the second."""
    if not os.path.lexists(directory.displaced):
        return
    if not os.path.lexists(prefix):
        rename_noreplace(directory.displaced, prefix)
    elif not os.path.lexists(directory.tree):
        rename_noreplace(directory.displaced, directory.tree)
    else:
        raise RecoveryNeeded(
            f"Somebody created {prefix} while a swap of it was interrupted",
            cause=f"The environment that was there is {directory.displaced}",
            hint=f"Nothing was deleted. Move {prefix} away, then run `envmedic recover` again",
            environment=RECOVERABLE,
        )
    sync(prefix, directory)
