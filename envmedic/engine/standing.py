"""The repairs that are in place in an environment, as their records tell. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envmedic.engine import journal as journals
from envmedic.engine import marker
from envmedic.engine.layout import Store
from envmedic.engine.session import load_record
from envmedic.model.plan import Artifact, Install
from envmedic.model.record import Record


@dataclass(frozen=True)
class Standing:
    """What is behind the tree at a prefix."""

    record: Record | None = None
    """Of the last repair that is in place, None where there is none."""
    artifacts: tuple[Artifact, ...] = ()
    """Wheels that the repairs in place installed, the last ones last."""


def standing(prefix: Path) -> Standing:
    """What is behind the tree at `prefix`. Raises RecoveryNeeded for a journal or record that cannot be read."""
    records = live_records(prefix)
    plans = (plan for record in reversed(records) for plan in (record.plan, *record.extensions))
    steps = (step for plan in plans for step in plan.steps if isinstance(step, Install))
    return Standing(
        record=records[0] if records else None, artifacts=tuple(item for step in steps for item in step.artifacts)
    )


def live_records(prefix: Path) -> tuple[Record, ...]:
    """The records of the repairs that the tree at `prefix` was made by, newest first.

    One whose directory was deleted ends the list. Raises RecoveryNeeded for a journal or record that cannot be read.
    """
    store = Store.of(prefix)
    known = {item.transaction: item for item in store.transactions()}
    found: list[Record] = []
    transaction = marker.read(store.prefix)
    while transaction is not None and (directory := known.pop(transaction, None)) is not None:
        journal = journals.read(directory)
        if journal.state == "done":
            found.append(load_record(directory, journal))
        transaction = journal.parent
    return tuple(found)
