"""What going to another generation would take out of sight: changes since, in both trees."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from envmedic import tree
from envmedic.ahead import Ahead
from envmedic.engine import marker
from envmedic.engine.layout import Store, TransactionDirectory
from envmedic.errors import RecoveryNeeded
from envmedic.forked import Forked


@dataclass(frozen=True)
class Loss:
    """What going to another generation would take out of sight. Paths are relative to the prefix."""

    transaction: str
    changed: tuple[str, ...] = ()
    """Changed, added or removed in the live environment since that transaction; the other tree lacks it."""
    damaged: tuple[str, ...] = ()
    """Edited in place in a file that both trees share, so that the kept tree no longer has the old content."""

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
            for fingerprint, root in _sides(directory, prefix):
                ahead.begin(_key(fingerprint, root), partial(changes, fingerprint, root))


def of_undo(directory: TransactionDirectory, prefix: Path, ahead: Ahead | None) -> Loss:
    """What an undo would lose. Raises RecoveryNeeded where a fingerprint cannot be read, OSError where a tree cannot."""
    live, kept = _sides(directory, prefix)
    with closing(_begun(ahead, *kept) or Forked(partial(changes, *kept))) as damaged:
        begun = _begun(ahead, *live)
        if begun is None:
            return Loss(directory.transaction, changes(*live), damaged.value())
        with closing(begun):
            return Loss(directory.transaction, begun.value(), damaged.value())


def changes(fingerprint: Path, root: Path) -> tuple[str, ...]:
    """Paths that have changed below `root` since the fingerprint was saved. Raises as `of_undo`."""
    try:
        before = tree.Fingerprint.load(fingerprint)
    except (OSError, ValueError) as error:
        raise RecoveryNeeded(
            "What has changed since the repair cannot be told",
            cause=str(error),
            hint=f"Restore {fingerprint} from a backup; both trees are kept as they are",
        ) from error
    return tuple(sorted(tree.changes(before, root).names))


def _sides(directory: TransactionDirectory, prefix: Path) -> tuple[tuple[Path, Path], tuple[Path, Path]]:
    """The live tree and the kept one, each behind the fingerprint of what it was."""
    return (directory.live_fingerprint, prefix), (directory.fingerprint, directory.tree)


def _key(fingerprint: Path, root: Path) -> Hashable:
    """An exchange puts another tree under the name. Raises OSError."""
    status = root.lstat()
    return str(fingerprint), status.st_dev, status.st_ino


def _begun(ahead: Ahead | None, fingerprint: Path, root: Path) -> Forked[tuple[str, ...]] | None:
    return None if ahead is None else ahead.take(_key(fingerprint, root))
