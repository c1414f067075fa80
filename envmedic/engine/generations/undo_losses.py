"""Edits that an undo or redo would hide: changes of the live tree and of the kept one since the repair."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from envmedic.ahead import Ahead
from envmedic.engine.store import marker
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.errors import RecoveryNeeded
from envmedic.forked import Forked
from envmedic.tree import fingerprint as tree


@dataclass(frozen=True)
class Loss:
    """Edits that an undo or redo would hide. Paths are relative to the prefix."""

    transaction: str
    changed: tuple[str, ...] = ()
    """Changed, added or removed in the live environment since the transaction; the kept tree lacks the change."""
    damaged: tuple[str, ...] = ()
    """Edited in place in a file that both trees share: the kept tree has lost the old content."""

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.changed or self.damaged)


def begin(ahead: Ahead, prefix: Path) -> None:
    """Begin the comparisons of an undo of the live generation of the environment whose real path is `prefix`.

    They hold for these very trees and fingerprints: an undo of others does not find them. Raises OSError, and
    PreflightError where the store is closed to this user.
    """
    live = marker.read(prefix)
    for directory in Store(prefix).transactions() if live is not None else ():
        if directory.transaction == live:
            ahead.begin(_key(directory.live_fingerprint, prefix), partial(_changed, directory, prefix))
            ahead.begin(_key(directory.fingerprint, directory.tree), partial(_damaged, directory))


def of_undo(directory: TransactionDirectory, prefix: Path, ahead: Ahead | None) -> Loss:
    """What an undo would lose. Raises RecoveryNeeded where a fingerprint cannot be read, OSError where a tree cannot."""
    with ExitStack() as begun:
        damaged = begun.enter_context(
            closing(_begun(ahead, directory.fingerprint, directory.tree) or Forked(partial(_damaged, directory)))
        )
        early = _begun(ahead, directory.live_fingerprint, prefix)
        changed = _changed(directory, prefix) if early is None else begun.enter_context(closing(early)).value()
        # Shared files are compared in the live tree only. If that one has changed, the kept tree is compared in full.
        found = changes(directory.fingerprint, directory.tree) if changed else damaged.value()
    return Loss(directory.transaction, changed, found)


def _changed(directory: TransactionDirectory, prefix: Path) -> tuple[str, ...]:
    return changes(directory.live_fingerprint, prefix)


def _damaged(directory: TransactionDirectory) -> tuple[str, ...]:
    """Changes in the kept tree, as long as nothing has changed in the live one."""
    return changes(directory.fingerprint, directory.tree, twin=directory.live_fingerprint)


def changes(fingerprint: Path, root: Path, *, twin: Path | None = None) -> tuple[str, ...]:
    """Paths that have changed below `root` since the fingerprint was saved; `twin` as for `tree.changes`.

    Raises as `of_undo`.
    """
    known = None if twin is None else _loaded(twin)
    return tuple(sorted(tree.changes(_loaded(fingerprint), root, twin=known).names))


def _loaded(fingerprint: Path) -> tree.Fingerprint:
    try:
        return tree.Fingerprint.load(fingerprint)
    except (OSError, ValueError) as error:
        raise RecoveryNeeded(
            "What has changed since the repair cannot be told",
            cause=str(error),
            hint=f"Restore {fingerprint} from a backup; both trees are kept as they are",
        ) from error


def _key(fingerprint: Path, root: Path) -> Hashable:
    """An exchange puts another tree under the name. Raises OSError."""
    status = root.lstat()
    return str(fingerprint), status.st_dev, status.st_ino


def _begun(ahead: Ahead | None, fingerprint: Path, root: Path) -> Forked[tuple[str, ...]] | None:
    return None if ahead is None else ahead.take(_key(fingerprint, root))
