"""The records of the repairs that are in place in an environment. Reads only."""

from __future__ import annotations

from pathlib import Path

from envmedic.engine.store import journal as journals
from envmedic.engine.store import marker
from envmedic.engine.store.context import load_record
from envmedic.engine.store.layout import Store
from envmedic.model.record import Record


def live_records(prefix: Path) -> tuple[Record, ...]:
    """The records of the repairs in the ancestry of the tree at `prefix`, newest first.

    A deleted transaction directory ends the list; the store of another user gives none. Raises RecoveryNeeded for an
    unreadable journal or record.
    """
    store = Store.of(prefix)
    if store.closed:
        return ()
    known = {item.transaction: item for item in store.transactions()}
    found: list[Record] = []
    transaction = marker.read(store.prefix)
    while transaction is not None and (directory := known.pop(transaction, None)) is not None:
        journal = journals.read(directory)
        if journal.state == "done":
            found.append(load_record(directory, journal))
        transaction = journal.parent
    return tuple(found)
