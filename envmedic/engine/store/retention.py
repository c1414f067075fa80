"""Bounded size of the store: of a transaction that nothing leads to any more only its record and journal stay."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from envmedic.engine.store import journal as journals
from envmedic.engine.store import marker
from envmedic.engine.store.journal import Journal
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.engine.store.swap import Point, no_point
from envmedic.model.record import COMPLETE_STATES


def trim(store: Store, point: Point = no_point) -> None:
    """Remove the fingerprints, plans and event logs that no command reads any more. The caller holds the lock.

    A crash in between leaves some of them, which do no harm, to the next call. Raises OSError, and RecoveryNeeded for a
    journal that cannot be read.
    """
    for path in [path for path in _unread(store) if os.path.lexists(path)]:
        path.unlink()
        point("trimmed")


def _unread(store: Store) -> Iterator[Path]:
    known = [(directory, journals.read(directory)) for directory in store.transactions()]
    near = {marker.read(store.prefix), *(generation for item in known for generation in _reachable(*item))}
    for directory, journal in known:
        if not journal.settled or directory.tree.is_dir():
            continue
        # `diff` and `lock` compare a live generation with its fingerprint
        if journal.transaction not in near:
            yield directory.live_fingerprint
            if directory != known[-1][0]:  # whose log tells why it failed
                yield from (directory.plan, directory.events, *directory.witness.glob("*"))
        if None not in near or directory != _found_last(known):
            yield directory.fingerprint


def _reachable(directory: TransactionDirectory, journal: Journal) -> tuple[str | None, ...]:
    """The generations that an undo or redo over the transaction makes live."""
    return (journal.transaction, journal.parent) if directory.tree.is_dir() or not journal.settled else ()


def _found_last(known: list[tuple[TransactionDirectory, Journal]]) -> TransactionDirectory | None:
    """The transaction whose `fingerprint` tells what the environment was without repairs."""
    roots = [item for item, journal in known if journal.parent is None and journal.state in COMPLETE_STATES]
    return roots[-1] if roots else None
