"""The records of the repairs that are in place in an environment. Reads only."""

from __future__ import annotations

from pathlib import Path

from envmedic.engine.store import journal as journals
from envmedic.engine.store import marker
from envmedic.engine.store.context import load_record
from envmedic.engine.store.layout import Store
from envmedic.errors import RecoveryNeeded
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


def undone_record(prefix: Path, class_plan: str) -> Record | None:
    """The record of the newest repair by that plan for a class that was taken back; None without one."""
    store = Store.of(prefix)
    if store.closed:
        return None
    for directory in reversed(store.transactions()):
        journal = journals.read(directory)
        if journal.state == "undone":
            record = load_record(directory, journal)
            if record.plan.class_plan == class_plan:
                return record
    return None


def last_seconds(prefix: Path) -> float | None:
    """How long the newest successful repair of the environment at `prefix` took; None without one."""
    store = Store.of(prefix)
    if store.closed:
        return None
    for directory in reversed(store.transactions()):
        try:
            record = load_record(directory, journals.read(directory))
        except RecoveryNeeded:  # its own command reports that; how long something took is no reason to
            continue
        if record.plan.purpose == "repair" and record.outcome in {"repaired", "partial"}:
            return sum(record.seconds.values())
    return None
