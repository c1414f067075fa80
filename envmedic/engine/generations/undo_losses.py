"""Edits that an undo or redo would hide: changes of the live tree and of the kept one since the repair."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envmedic.engine.store.layout import TransactionDirectory
from envmedic.errors import RecoveryNeeded
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


def of_undo(directory: TransactionDirectory, prefix: Path) -> Loss:
    """What an undo would lose. Raises RecoveryNeeded where a fingerprint cannot be read, OSError where a tree cannot."""
    changed = changes(directory.live_fingerprint, prefix)
    # Shared files are compared in the live tree only. If that one has changed, the kept tree is compared in full.
    twin = None if changed else directory.live_fingerprint
    return Loss(directory.transaction, changed, changes(directory.fingerprint, directory.tree, twin=twin))


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
