"""The generations of an environment: history, undo, redo, prune.

Each finished transaction keeps the tree that is not at the prefix: the old one in state `done`, the repaired one in
state `undone`. Its parent is the transaction whose tree was live before. Generations therefore form a tree, and
undo and redo move along its edges.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal, TypeVar

from envmedic.engine.fs import trash
from envmedic.engine.generations import carry_over, project_files, undo_losses
from envmedic.engine.generations.finish import conclude, exchange_again, note_only_copies, recoverable
from envmedic.engine.generations.late_writes import changed_meanwhile, late_writes
from envmedic.engine.generations.only_copies import only_copies, only_copies_told
from envmedic.engine.generations.recovery import settle
from envmedic.engine.generations.still_proven import still_proven
from envmedic.engine.generations.tree_cost import held_alone, held_in_turn
from envmedic.engine.generations.undo_losses import Loss
from envmedic.engine.stage.activated_runner import ActivatedRunner
from envmedic.engine.stage.runners import DirectRunner
from envmedic.engine.store import journal as journals
from envmedic.engine.store import marker, retention
from envmedic.engine.store.context import OpenTransaction, TransactionContext, load_record
from envmedic.engine.store.layout import Store, TransactionDirectory
from envmedic.engine.store.lock import locked
from envmedic.engine.store.protection import refuse_in_use
from envmedic.engine.store.swap import Point, no_point, refuse_link, swap, sync
from envmedic.engine.store.uv_lock import uv_locked
from envmedic.engine.witness import asking as witnesses
from envmedic.errors import (
    RECOVERABLE,
    STORAGE_HINTS,
    EnvironmentBusy,
    EnvmedicError,
    InputError,
    PreflightError,
    RecoveryNeeded,
    RepairDeclined,
)
from envmedic.model.events import Emit, EventStream, Notice, Progress, StageFinished, StageStarted
from envmedic.model.plan import Change
from envmedic.model.record import Generation, History, KeepLimits, KeptTree, NewFiles, Record
from envmedic.tree.fingerprint import readable
from envmedic.wording import counted

FOUND = "found"
"""As the target of an undo: the environment before the first repair."""
_Asked = TypeVar("_Asked")
_LISTED = 20


Accept = Callable[[Loss], bool]
"""Asks whether to continue despite a loss."""
KeepNew = Callable[[NewFiles], bool]
"""Asks whether an undo carries new files over; called where there are some."""
DropNew = Callable[[tuple[KeptTree, ...]], bool]
"""Asks whether trees with files that exist nowhere else are removed with them; called where there are some."""


@dataclass(frozen=True)
class _Known:
    """A transaction, read from its files."""

    directory: TransactionDirectory
    record: Record
    parent: str | None

    @property
    def has_tree(self) -> bool:
        return self.directory.tree.is_dir()

    @property
    def is_snapshot(self) -> bool:
        return self.record.plan.purpose == "snapshot"


def history(prefix: Path) -> History:
    """Every transaction on the environment at `prefix`, newest first; reads only.

    Raises RecoveryNeeded for a journal or record that cannot be read.
    """
    store = Store.of(prefix)
    live = marker.read(store.prefix)
    known = sorted(_known(store), key=lambda item: item.directory.transaction, reverse=True)
    generations = tuple(_generation(item, live, store.prefix) for item in known)
    return History(
        prefix=str(prefix),
        generations=generations,
        size_bytes=held_alone(*(place for item in known for place in _places(item))),
    )


def _known(store: Store) -> Iterator[_Known]:
    for directory in store.transactions():
        journal = journals.read(directory)
        yield _Known(directory, load_record(directory, journal), journal.parent)


def _places(item: _Known) -> tuple[Path, ...]:
    """What a transaction keeps: its directory, and a tree that lies elsewhere."""
    path, tree = item.directory.path, item.directory.tree
    return (path,) if tree.parent == path else (path, tree)


def _generation(item: _Known, live: str | None, prefix: Path) -> Generation:
    record, kept = item.record, item.directory.tree
    return Generation(
        transaction=record.transaction,
        parent=item.parent,
        state=record.state,
        live=live == record.transaction,
        started=record.started,
        finished=record.finished,
        purpose=record.plan.purpose,
        text=record.plan.text,
        playbook=record.plan.playbook,
        changes=tuple(_change(change) for change in record.plan.changes),
        undo_possible=record.state == "done" and live == record.transaction and item.has_tree,
        redo_possible=record.state == "undone" and live == item.parent and item.has_tree,
        kept=item.has_tree,
        tree=str(kept) if item.has_tree else None,
        only_copies=readable(only_copies(item.directory, record.state, prefix)) if item.has_tree else (),
        size_bytes=held_alone(kept),
    )


def _change(change: Change) -> str:
    if change.before and change.before == change.after:
        return f"reinstall {change.name} {change.after}"
    if change.before and change.after:
        return f"{change.name} {change.before} -> {change.after}"
    return f"{change.kind} {change.name} {change.after or change.before or ''}".rstrip()


def undo(
    session: TransactionContext,
    *,
    to: str | None = None,
    force: bool = False,
    accept: Accept | None = None,
    keep_new: KeepNew | None = None,
) -> Record:
    """Put the tree back that was there before the live generation, byte for byte; returns the record.

    `to` names the generation to go back to, over several steps: a transaction id or `FOUND`. Files that are new
    since the repair are carried over where `keep_new` says so. Other changes are not: without `force` they are
    refused, or put to `accept`. Raises InputError when there is nothing to undo or no such generation, PreflightError
    with the changes in `details`, or where new files cannot be copied, RepairDeclined, EnvironmentBusy, Interrupted.
    """
    with session.interruption.watching(), locked(session.store):
        settle(session)
        refuse_in_use(session.prefix, session.ports.processes(session.prefix), session.options.allow)
        chain = _chain_back(session.store, to)
        agreed = _always if force else accept
        return [_undo(session, item, agreed, keep_new) for item in chain][-1]


def redo(
    session: TransactionContext, *, to: str | None = None, force: bool = False, accept: Accept | None = None
) -> Record:
    """Put an undone repair in place again, by default the one that was undone last.

    It is smoke-tested in place, unless nothing that its proof depends on has changed since (`still_proven`); on
    failure the exchange is reverted, and the record is `undone` with a `failure`.
    `to`, `force`, `accept` and the errors are those of `undo`.
    """
    with session.interruption.watching(), locked(session.store) as lock:
        settle(session)
        refuse_in_use(session.prefix, session.ports.processes(session.prefix), session.options.allow)
        return _redo(session, _next(session.store, to), _always if force else accept, lock)


def _always(_loss: Loss) -> bool:
    return True


def _chain_back(store: Store, to: str | None) -> list[_Known]:
    """The transactions to undo, live one first, until `to` is live.

    A snapshot is gone back to by undoing it too, since its generation may have been changed by hand. Without `to`, one
    to which nothing has happened since is no answer: what was made before it is undone with it.
    """
    known = {item.directory.transaction: item for item in _known(store)}
    live = marker.read(store.prefix)
    if to is None:
        target = _nearest(store, known, live)
    else:
        target = known[to].parent if to in known and known[to].is_snapshot else None if to == FOUND else to
    chain: list[_Known] = []
    # At least one step even where the target is None: the parent of the first repair has no id.
    while live != target or not chain:
        item = known.get(live) if live is not None else None
        if item is None or item.record.state != "done":
            raise _not_there(store, to)
        if not item.has_tree:
            raise InputError(
                f"Transaction {live} can no longer be undone",
                cause="The tree from before it was pruned",
                hint="See what is kept with `envmedic history`",
            )
        chain.append(item)
        live = item.parent
    return chain


def _nearest(store: Store, known: Mapping[str, _Known], live: str | None) -> str | None:
    """The generation before the last one that changed something, or before a snapshot after which something did."""
    while live is not None and live in known:
        last = known[live]
        live = last.parent
        if not (last.has_tree and live in known and _is_as_taken(last, store.prefix)):
            break
    return live


def _is_as_taken(item: _Known, prefix: Path) -> bool:
    """Whether a generation is a snapshot of exactly what is at `prefix`."""
    return item.is_snapshot and not undo_losses.changes(item.directory.live_fingerprint, prefix)


def _not_there(store: Store, to: str | None) -> InputError:
    if to is None:
        return InputError(
            f"There is nothing to undo for {store.prefix}",
            cause="No repair of envmedic is in place there",
            hint="See `envmedic history`",
        )
    return InputError(
        f"{store.prefix} does not descend from a generation {to}",
        cause="It is not among those that led to the live one",
        hint="See `envmedic history` for their ids",
    )


def _next(store: Store, to: str | None) -> _Known:
    live = marker.read(store.prefix)
    possible = [
        item
        for item in _known(store)
        if item.record.state == "undone" and item.parent == live and item.has_tree
        if to is None or item.directory.transaction == to
    ]
    if not possible:
        raise InputError(
            f"There is nothing to redo for {store.prefix}",
            cause="No undone repair of the live generation is kept" + (f" with the id {to}" if to else ""),
            hint="See `envmedic history`",
        )
    # `finished` is the time of the undo here; the id, which sorts by start, only breaks ties.
    return max(possible, key=lambda item: (item.record.finished or "", item.directory.transaction))


def _undo(session: TransactionContext, item: _Known, accept: Accept | None, keep_new: KeepNew | None) -> Record:
    directory, transaction = item.directory, OpenTransaction.load(session, item.directory)
    with recoverable(session.prefix), transaction.opened(), session.stage("undo"), ExitStack() as stack:
        found = undo_losses.changes(directory.live_fingerprint, session.prefix)
        new = carry_over.new_files(directory.tree, session.prefix, found)
        keeps = new.any and keep_new is not None and _asked(session, keep_new, new)
        loss = undo_losses.of_undo(directory, session.prefix, found, carry=new.files if keeps else ())
        _ask(session, loss, accept)
        if keeps:
            stack.enter_context(carry_over.carried_over(transaction, new))
        _go(transaction, "undoing", "done", found.names, directory.live_fingerprint)
        if loss.damaged:
            lost = f"Edited in place since the repair, so not as before: {', '.join(loss.damaged[:_LISTED])}"
            transaction.note(notes=(*transaction.record.notes, lost))
        note_only_copies(transaction, "undone")
        project_files.restore(transaction)
        return carry_over.finish(transaction)


def _redo(session: TransactionContext, item: _Known, accept: Accept | None, lock: int) -> Record:
    directory, transaction = item.directory, OpenTransaction.load(session, item.directory)
    with recoverable(session.prefix), transaction.opened(), session.stage("redo"):
        found = undo_losses.changes(directory.fingerprint, session.prefix)
        _ask(session, undo_losses.of_redo(directory, session.prefix, found), accept)
        proven = still_proven(transaction, session.ports)
        _go(transaction, "redoing", "undone", found.names, directory.fingerprint)
        if proven:
            told = "Not checked again: its files, the driver and the GPUs are those that the repair was proven with"
            session.emit(Notice(code="still-proven", message=told))
            note_only_copies(transaction, "done")
            project_files.place(transaction)
            return transaction.finish("done")
        runner = ActivatedRunner(DirectRunner(session.prefix, inherit=[lock]), session.prefix, session.interruption)
        return conclude(transaction, runner, redo=True)


def _go(
    transaction: OpenTransaction,
    under: Literal["undoing", "redoing"],
    otherwise: Literal["done", "undone"],
    accepted: Collection[str],
    fingerprint: Path,
) -> None:
    """Swap the trees under the journal; where the live one has more changes than those `accepted`, swap them back.

    `fingerprint` is that of the tree that goes. Raises EnvironmentBusy and, when a swap is impossible, PreflightError;
    both leave everything unchanged.
    """
    session, directory = transaction.session, transaction.directory
    known = undo_losses.loaded(fingerprint)
    witnesses.tell_unasked(transaction)
    session.interruption.commit()
    # The journal comes first: a kill while uv's lock is held leaves a lock file, which only recovery looks for.
    transaction.move(under)
    try:
        refuse_link(session.prefix)
        with uv_locked(session, directory):
            swap(session.prefix, directory, transaction.journal.method, session.point)
            late = late_writes(known, directory.tree, session.prefix, accepted=accepted)
            if late:
                exchange_again(transaction, locked=True)
    except (PreflightError, EnvironmentBusy):
        transaction.move(otherwise)
        raise
    if late:
        transaction.move(otherwise)
        raise changed_meanwhile(session.prefix, late, "while it was exchanged")
    sync(session.prefix, directory)


def _ask(session: TransactionContext, loss: Loss, accept: Accept | None) -> None:
    if not loss:
        return
    if accept is None:
        names = (*loss.damaged, *loss.changed)
        raise PreflightError(
            f"{session.prefix} has changed since: "
            f"{counted(len(names), 'file would not be as it is now', 'files would not be as they are now')}",
            cause=_reason(loss),
            hint="Save what you need, then accept it (--yes)",
            details=names,
        )
    if not _asked(session, accept, loss):
        raise RepairDeclined("Declined")


def _asked(session: TransactionContext, question: Callable[[_Asked], bool], about: _Asked) -> bool:
    """Put a question; a signal ends the wait for its answer."""
    with session.interruption.at_once():
        return question(about)


def _reason(loss: Loss) -> str:
    if loss.damaged:
        return f"{loss.damaged[0]} was edited in place in both trees, so its old content cannot come back"
    return f"{loss.changed[0]} differs from what the repair left"


def prune(
    prefix: Path, *, limits: KeepLimits, stream: EventStream, drop_new: DropNew | None = None, point: Point = no_point
) -> tuple[str, ...]:
    """Delete the kept trees beyond the `limits`; returns the transactions that lost theirs.

    The live tree and all records stay, and so do trees with files that exist nowhere else, where `drop_new` does not
    say otherwise. Raises EnvironmentBusy, RecoveryNeeded while a transaction is interrupted or where a tree was deleted
    in part only, and PreflightError where none could be.
    """
    store = Store.of(prefix)
    if not store.transactions():
        return ()
    with locked(store):
        for directory in store.transactions():
            if journals.unsettled(directory):
                raise RecoveryNeeded(
                    f"Transaction {directory.transaction} was interrupted", hint="Run `envmedic recover` first"
                )
        try:
            return prune_trees(store, limits, stream.emit, point, drop_new).removed
        except OSError as error:
            raise not_pruned(store, error) from error


@dataclass(frozen=True)
class Pruned:
    """What pruning did."""

    removed: tuple[str, ...]
    """The transactions whose tree was deleted, oldest first."""
    spared: tuple[KeptTree, ...]
    """The trees that stay for their files alone."""


def prune_trees(
    store: Store, limits: KeepLimits, emit: Emit, point: Point = no_point, drop_new: DropNew | None = None
) -> Pruned:
    """As `prune`, for a caller that holds the lock."""
    trees = surplus(store, limits)
    spared = tuple(item for item in trees if item.only_copies)
    if spared and drop_new is not None and drop_new(spared):
        _require_same(store, limits, spared)
        spared = ()
    removed = tuple(item.transaction for item in trees if item not in spared)
    for directory in store.transactions():
        if directory.transaction in removed:
            _remove_tree(directory, emit, point)
    retention.trim(store, point)
    return Pruned(removed, spared)


def _require_same(store: Store, limits: KeepLimits, agreed: tuple[KeptTree, ...]) -> None:
    """Refuse to delete other files than those that were agreed to: a program may have written there meanwhile."""
    now = tuple(item for item in surplus(store, limits) if item.only_copies)
    if now != agreed:
        trees = ", ".join(item.tree for item in now if item not in agreed)
        raise EnvironmentBusy(
            f"The files that exist only in kept trees of {store.prefix} changed after they were listed",
            cause=f"A program wrote to {trees}" if trees else "Some of them were removed or are elsewhere too by now",
            hint="Nothing was removed. Run `envmedic prune` again when nothing works on them",
        )


def _remove_tree(directory: TransactionDirectory, emit: Emit, point: Point) -> None:
    started = time.monotonic()
    emit(StageStarted(stage="prune"))
    directory.discard_tree()
    point("tree-discarded")
    trash.empty(directory.trash, lambda files: emit(Progress(stage="prune", unit="files", done=files)))
    point("trash-emptied")
    emit(StageFinished(stage="prune", seconds=time.monotonic() - started))


def not_pruned(store: Store, error: OSError) -> EnvmedicError:
    """The error for a kept tree that the system did not let go. The live tree is never touched."""
    what = STORAGE_HINTS.get(error.errno or 0, "Mend that")
    for item in store.transactions():
        if item.trash.is_dir() and any(item.trash.iterdir()):
            return RecoveryNeeded(
                f"The kept tree of transaction {item.transaction} was removed in part",
                cause=str(error),
                hint=f"{what}, then run `envmedic recover`, which removes the rest",
                environment=RECOVERABLE,
            )
    return PreflightError(
        f"No kept tree of {store.prefix} can be removed",
        cause=str(error),
        hint=f"{what}, then run `envmedic prune` again",
    )


def surplus(store: Store, limits: KeepLimits) -> tuple[KeptTree, ...]:
    """The trees beyond the `limits`, oldest first; reads only. Raises RecoveryNeeded.

    Most useful are the trees that undo leads to, nearest first, then those that redo leads to, newest first; those
    that share no limit with them go.
    """
    every = [item for item in _known(store) if item.has_tree]
    useful = {item.directory.transaction for item in _within(_by_use(store), every, limits)}
    return tuple(
        KeptTree(
            transaction=item.directory.transaction,
            tree=str(item.directory.tree),
            only_copies=readable(only_copies(item.directory, item.record.state, store.prefix)),
        )
        for item in every
        if item.directory.transaction not in useful
    )


def spared_told(tree: KeptTree) -> str:
    """Why pruning spared a tree."""
    return f"{only_copies_told(tree.tree, tree.only_copies)}. `envmedic prune` asks before it removes them"


def _within(trees: list[_Known], every: Sequence[_Known], limits: KeepLimits) -> list[_Known]:
    """The longest beginning of `trees`, most useful first, that the limits allow; what of `every` is not in it goes."""
    spared = [item for item in trees if item.is_snapshot and not limits.snapshots]
    found = [item for item in trees if item not in spared]
    if limits.count is not None:
        found = found[: limits.count]
    if limits.since is not None:
        since = limits.since
        found = [item for item in found if (item.record.finished or item.record.started) >= since]
    if limits.size_bytes is not None:
        names = {item.directory.transaction for item in (*found, *spared)}
        going = [item for item in every if item.directory.transaction not in names]
        # files that they share with trees that go are theirs alone afterwards
        added = held_in_turn([item.directory.tree for item in (*found, *going)])
        found = [item for item, total in zip(found, accumulate(added), strict=False) if total <= limits.size_bytes]
    return [*spared, *found]


def _by_use(store: Store) -> list[_Known]:
    known = {item.directory.transaction: item for item in _known(store)}
    chain: list[_Known] = []
    live = marker.read(store.prefix)
    while live in known and known[live] not in chain:
        chain.append(known[live])
        live = known[live].parent
    undone = [item for item in reversed(known.values()) if item.record.state == "undone"]
    return [item for item in (*chain, *undone) if item.has_tree]
