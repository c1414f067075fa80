"""The journal of a transaction: its state, always durable before the change on disk that it announces.

`cloning` → `repairing` → `ready` → `exchanged` → `done`, or `aborted` with the environment unchanged, or from `ready`
and `exchanged` `undone`: taken back, and the repaired tree is kept for files written into it meanwhile;
`done` → `undoing` → `undone` → `redoing` → `done` for undo and redo. A snapshot goes from `cloning` to `done`. After a crash the state and the marker file
(`marker`) together say what to do; `recovery` has the table.
"""

from __future__ import annotations

import shlex
import time

import msgspec

from envmedic.engine.fs.durable import write_durably
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.errors import RECOVERABLE, InternalError, RecoveryNeeded
from envmedic.model.base import Model, to_json
from envmedic.model.record import FINAL_STATES, State
from envmedic.model.registries.modes import ExchangeMethod

JOURNAL_SCHEMA = "envmedic.journal/1"

_NEXT: dict[State, frozenset[State]] = {
    "cloning": frozenset({"repairing", "done", "aborted"}),  # a snapshot ends here: its clone is never exchanged
    "repairing": frozenset({"ready", "aborted"}),
    "ready": frozenset({"exchanged", "undone", "aborted"}),
    "exchanged": frozenset({"done", "undone", "aborted"}),
    "done": frozenset({"undoing"}),
    "undoing": frozenset({"undone", "done"}),
    "undone": frozenset({"redoing"}),
    "redoing": frozenset({"done", "undone"}),
    "aborted": frozenset(),
}


class Journal(Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a transaction that must survive a crash. Times are RFC 3339, UTC."""

    schema: str = JOURNAL_SCHEMA
    transaction: str
    parent: str | None
    """The transaction whose generation was live when this one began; None for the environment as it was found."""
    prefix: str
    """The environment's real path when the transaction began."""
    state: State
    method: ExchangeMethod
    clone: str = ""
    staging: str = ""
    started: str
    updated: str

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do after a crash."""
        return self.state in FINAL_STATES


def now() -> str:
    """The time as journals and records write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def encode(journal: Journal) -> bytes:
    """The bytes of a journal file."""
    return to_json(journal).encode() + b"\n"


def read(directory: TransactionDirectory) -> Journal:
    """Read and check a journal. Raises RecoveryNeeded when it is missing, damaged or not this directory's."""
    try:
        journal = msgspec.json.decode(directory.journal.read_bytes(), type=Journal)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unreadable(directory, str(error)) from error
    # A newer envmedic may have states that this one would misread: refuse, and delete nothing.
    if journal.schema != JOURNAL_SCHEMA:
        raise _unreadable(directory, f"it is written as {journal.schema!r}, perhaps by a newer envmedic")
    if journal.transaction != directory.transaction:
        raise _unreadable(directory, f"it speaks of transaction {journal.transaction!r}")
    return journal


def _unreadable(directory: TransactionDirectory, cause: str) -> RecoveryNeeded:
    aside = directory.path.parent.parent / f"envmedic-{directory.transaction}"
    return RecoveryNeeded(
        f"The journal of transaction {directory.transaction} cannot be read",
        cause=f"{directory.journal}: {cause}",
        hint=(
            "Nothing was changed or deleted. If the environment works, move the transaction's directory out of "
            f"the way: mv {shlex.quote(str(directory.path))} {shlex.quote(str(aside))}"
        ),
        environment=RECOVERABLE,
    )


def move(directory: TransactionDirectory, journal: Journal, state: State) -> Journal:
    """Write durably that the transaction is in `state` now; returns the new journal."""
    if state not in _NEXT[journal.state]:
        raise InternalError(f"A transaction cannot go from {journal.state} to {state}", environment=RECOVERABLE)
    moved = msgspec.structs.replace(journal, state=state, updated=now())
    write_durably(directory.journal, encode(moved))
    return moved


def interrupted(store: Store) -> bool:
    """Whether a crash left a transaction to settle. Raises RecoveryNeeded for a journal that cannot be read."""
    return bool(store.unfinished()) or any(item.trash.is_dir() or unsettled(item) for item in store.transactions())


def unsettled(directory: TransactionDirectory) -> bool:
    """Whether a transaction has not ended, or an undo left its copies. Raises RecoveryNeeded as `read` does."""
    return not read(directory).settled or directory.carried.exists()
