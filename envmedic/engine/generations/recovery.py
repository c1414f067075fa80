"""Recovery after a crash: finish or drop every interrupted transaction, so that the environment is whole.

The journal says which state the transaction had reached for certain; the marker at the prefix says which tree is live:

=====================  ====================================  ===================================
state                  the repaired tree is at the prefix    it is not
=====================  ====================================  ===================================
cloning, repairing     (cannot be)                           drop it: aborted
ready                  back if the old tree was changed      drop it: aborted*
                       meanwhile: aborted*; else as below
exchanged              smoke check: done, or back: aborted*  it was taken back, drop it: aborted*
undoing                exchange: undone                      undone
done, with a list of   the copies are removed                (cannot be)
carried files
redoing                smoke check: done, or back: undone    exchange, then the same
done, undone, aborted  nothing; what was being deleted is deleted
=====================  ====================================  ===================================

(*) Not dropped but kept, as ``undone``, where files were written into it while it was live.

Edited files of the project go with the tree that stays, see `project_files`. A crash during recovery is harmless: the same row applies again.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from pathlib import Path

from envmedic.engine.generations import carry_over, project_files
from envmedic.engine.generations.finish import conclude, drop, exchange_again, note_only_copies, recoverable, set_aside
from envmedic.engine.generations.late_writes import changed_meanwhile, late_writes
from envmedic.engine.generations.undo_losses import loaded
from envmedic.engine.stage.activated_runner import ActivatedRunner
from envmedic.engine.stage.runners import DirectRunner
from envmedic.engine.store import journal as journals
from envmedic.engine.store import marker
from envmedic.engine.store.context import OpenTransaction, TransactionContext, empty_trash
from envmedic.engine.store.interruption import Interruption
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.engine.store.lock import locked
from envmedic.engine.store.swap import Point, mend, no_point, sync
from envmedic.engine.store.uv_lock import sweep
from envmedic.errors import RECOVERABLE, Interrupted, RecoveryNeeded
from envmedic.model.events import EventStream
from envmedic.model.ports import ApplyOptions, CheckRunner, EnginePorts
from envmedic.model.record import Record


def recover(
    prefix: Path, *, ports: EnginePorts, checks: CheckRunner, stream: EventStream, point: Point = no_point
) -> tuple[Record, ...]:
    """Settle the interrupted transactions of the environment at `prefix`; returns their records.

    The prefix itself may be missing. Without interrupted transactions nothing is written. Raises EnvironmentBusy
    while another envmedic works on it, and RecoveryNeeded with the steps that a person must take.
    """
    store = Store.of(prefix)
    if not journals.interrupted(store):
        return ()
    session = TransactionContext(store, ApplyOptions(), ports, checks, stream, point=point)
    with locked(store), session.interruption.watching():
        return settle(session)


def settle(session: TransactionContext) -> tuple[Record, ...]:
    """Settle every interrupted transaction, oldest first. The caller holds the lock.

    Signals do not interrupt it: that would only leave the same work for later.
    """
    session = dataclasses.replace(session, interruption=Interruption.finishing())
    records: list[Record] = []
    with recoverable(session.prefix):
        session.store.sweep()
        for directory in session.store.transactions():
            if journals.read(directory).settled:
                records += _left_over(session, directory)
                empty_trash(session, directory)  # a kill during the deletion, after the journal was final
                continue
            transaction = OpenTransaction.load(session, directory)
            with transaction.opened():
                records.append(_settle(transaction))
    return tuple(records)


def _left_over(session: TransactionContext, directory: TransactionDirectory) -> tuple[Record, ...]:
    """Settle the list of an undo that carries files over: killed before the journal said `undoing`, or after its end."""
    if not directory.carried.exists():
        return ()
    transaction = OpenTransaction.load(session, directory)
    if transaction.journal.state != "done":
        carry_over.forget(directory)
        return ()
    with transaction.opened(), session.stage("recover"):
        carry_over.take_back(session, directory)
    return (transaction.record,)


def _settle(transaction: OpenTransaction) -> Record:
    session, directory = transaction.session, transaction.directory
    state = transaction.journal.state
    with session.stage("recover"):
        # First complete or revert a swap by renames: until then the prefix may be missing for that reason alone.
        mend(session.prefix, directory)
        session.point("mended")
        if not os.path.exists(session.prefix):  # noqa: PTH110  # a link to a tree that is gone is none
            raise _missing(transaction)
        sweep(session, directory)
        live = marker.read(session.prefix) == directory.transaction
        _require_known(transaction, live=live)
        if state == "undoing":
            return _take_back(transaction, live=live)
        if state == "redoing":
            return _bring_back(transaction, live=live)
        if not live:
            return (set_aside if state in {"ready", "exchanged"} else drop)(transaction, _killed(transaction))
        sync(session.prefix, directory)
        if state == "ready":  # killed between the exchange and the journal
            late = late_writes(loaded(directory.fingerprint), directory.tree, session.prefix)
            if late:
                exchange_again(transaction)
                return set_aside(transaction, changed_meanwhile(session.prefix, late, "while it was exchanged"))
            transaction.move("exchanged")
        return conclude(transaction, _in_place(session))


def _take_back(transaction: OpenTransaction, *, live: bool) -> Record:
    if live:
        exchange_again(transaction)
    else:
        sync(transaction.session.prefix, transaction.directory)
    note_only_copies(transaction, "undone")
    project_files.restore(transaction)
    return carry_over.finish(transaction)


def _bring_back(transaction: OpenTransaction, *, live: bool) -> Record:
    session = transaction.session
    if live:
        sync(session.prefix, transaction.directory)
    else:
        exchange_again(transaction)
    return conclude(transaction, _in_place(session), redo=True)


def _require_known(transaction: OpenTransaction, *, live: bool) -> None:
    """Require that one of the two trees carries the marker of this transaction.

    If neither does, a third tree was put at the prefix, and the kept tree may be the only copy of the original
    environment, which must not be deleted as a failed clone. Raises RecoveryNeeded.
    """
    directory, kept = transaction.directory, transaction.directory.tree
    if live or transaction.journal.state in {"cloning", "repairing"} or not kept.is_dir():
        return
    if marker.read(kept) == directory.transaction:
        return
    aside = directory.path.parent.parent / f"envmedic-{directory.transaction}"
    raise RecoveryNeeded(
        f"{transaction.session.prefix} was replaced by something else after envmedic had been interrupted",
        cause=f"Neither it nor {kept}, the environment as it was before the repair, is the repaired one",
        hint=f"Nothing was deleted. To keep both: mv {shlex.quote(str(directory.path))} {shlex.quote(str(aside))}",
        environment=RECOVERABLE,
    )


def _in_place(session: TransactionContext) -> ActivatedRunner:
    return ActivatedRunner(DirectRunner(session.prefix), session.prefix, session.interruption)


def _killed(transaction: OpenTransaction) -> Interrupted:
    return Interrupted(
        f"envmedic was killed while transaction {transaction.directory.transaction} was {transaction.journal.state}",
        hint="Run the repair again",
    )


def _missing(transaction: OpenTransaction) -> RecoveryNeeded:
    kept = transaction.directory.tree
    return RecoveryNeeded(
        f"{transaction.session.prefix} does not exist",
        cause="It was removed or moved away after envmedic had been interrupted",
        hint=f"Put it back, then run `envmedic recover`; a copy of it, with or without the repair, is {kept}",
        environment=RECOVERABLE,
    )
