"""Wheels that repairs installed in an environment, and whether the environment changed since the last repair."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from envmedic.engine.fs.durable import write_durably
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.engine.store.lock import locked
from envmedic.model.base import to_json
from envmedic.model.plan import Artifact, Install
from envmedic.model.record import Record
from envmedic.tree import fingerprint


def artifacts(records: Iterable[Record]) -> tuple[Artifact, ...]:
    """The wheels that the repairs of `records` (newest first) installed, newest last."""
    return tuple(item for record in reversed(tuple(records)) for item in _of(record))


def _of(record: Record) -> tuple[Artifact, ...]:
    """Wheels of the plans that stand."""
    plans = (plan for plan in (record.plan, *record.extensions) if plan not in record.abandoned)
    return tuple(item for plan in plans for step in plan.steps if isinstance(step, Install) for item in step.artifacts)


def unchanged(prefix: Path, record: Record) -> bool:
    """Whether every file at `prefix` is as that repair left it; False without a readable fingerprint."""
    store = Store.of(prefix)
    directory = TransactionDirectory(store.root / record.transaction)
    try:
        before = fingerprint.Fingerprint.load(directory.live_fingerprint)
    except (OSError, ValueError):
        return False  # a pruned or foreign transaction: claim nothing
    return not fingerprint.changes(before, store.prefix)


def noted(prefix: Path, record: Record, notes: tuple[str, ...]) -> Record:
    """`record` of a finished transaction with more `notes`, in its file too. Raises EnvironmentBusy or OSError."""
    told = msgspec.structs.replace(record, notes=(*record.notes, *notes))
    store = Store.of(prefix)
    with locked(store):
        directory = TransactionDirectory(store.root / record.transaction)
        write_durably(directory.record, to_json(told).encode() + b"\n")
    return told
