"""Edits that an undo or redo would hide: changes of the live tree and of the kept one since the repair."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from envmedic.engine.generations.only_copies import equal
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


def of_undo(
    directory: TransactionDirectory,
    prefix: Path,
    found: tree.Differences,
    *,
    carry: Collection[str] = (),
) -> Loss:
    """What an undo would lose of `found`, the changes at `prefix`, that copies the files `carry` over.

    Files that were added to the kept tree, before a redo or by an undo that carried them over, come back with it. Raises RecoveryNeeded where a fingerprint cannot be read, OSError
    where a tree cannot.
    """
    # Shared files are compared in the live tree only. If that one has changed, the kept tree is compared in full.
    twin = None if found else directory.live_fingerprint
    kept = changes(directory.fingerprint, directory.tree, twin=twin)
    damaged = tuple(sorted({*kept.names} - {*kept.added}))
    return Loss(directory.transaction, _hidden(found, prefix, directory.tree, carry), damaged)


def of_redo(directory: TransactionDirectory, prefix: Path, found: tree.Differences) -> Loss:
    """What a redo would lose of `found`, the changes at `prefix`. Raises OSError."""
    return Loss(directory.transaction, _hidden(found, prefix, directory.tree))


def changes(fingerprint: Path, root: Path, *, twin: Path | None = None) -> tree.Differences:
    """What has changed below `root` since the fingerprint was saved; `twin` as for `tree.changes`.

    Raises as `of_undo`.
    """
    known = None if twin is None else loaded(twin)
    return tree.changes(loaded(fingerprint), root, twin=known)


def _hidden(found: tree.Differences, live: Path, kept: Path, carry: Collection[str] = ()) -> tuple[str, ...]:
    """The changes of the tree `live` that go out of sight with it."""
    there = _with_parents(carry)
    added = (name for name in found.added if name not in there and not equal(live, kept, name))
    return tuple(sorted({*found.changed, *found.removed, *added}))


def _with_parents(names: Iterable[str]) -> frozenset[str]:
    return frozenset(str(path) for name in names for path in (name, *PurePosixPath(name).parents))


def loaded(fingerprint: Path) -> tree.Fingerprint:
    """Read a saved fingerprint. Raises RecoveryNeeded where it cannot be read."""
    try:
        return tree.Fingerprint.load(fingerprint)
    except (OSError, ValueError) as error:
        raise RecoveryNeeded(
            "What has changed since the repair cannot be told",
            cause=str(error),
            hint=f"Restore {fingerprint} from a backup; both trees are kept as they are",
        ) from error
