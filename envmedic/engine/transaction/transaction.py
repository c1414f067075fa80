"""A repair as a transaction: clone, repair the clone, prove it, exchange, smoke-test in place, keep the old tree.

`apply` runs a list of stages over a `Run`. Every failure before the exchange ends in `finish.drop`. After the
exchange the transaction always finishes, even when the user asks to stop.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path

from envmedic import __version__
from envmedic.engine.clone import losses
from envmedic.engine.clone.clone import clone
from envmedic.engine.fs.durable import make_directory
from envmedic.engine.fs.exchange import sync_filesystem
from envmedic.engine.generations import project_files
from envmedic.engine.generations.finish import conclude, drop, exchange_again, recoverable, set_aside, unfinished
from envmedic.engine.generations.generations import not_pruned, prune_trees, spared_told, surplus
from envmedic.engine.generations.late_writes import LISTED, changed_meanwhile, late_writes
from envmedic.engine.generations.recovery import settle
from envmedic.engine.stage import relocate
from envmedic.engine.stage.activated_runner import ActivatedRunner
from envmedic.engine.stage.runners import DirectRunner, NamespaceRunner, RelocateRunner
from envmedic.engine.store import journal as journals
from envmedic.engine.store import marker
from envmedic.engine.store.context import OpenTransaction, TransactionContext
from envmedic.engine.store.interruption import Cancel, Interruption, never
from envmedic.engine.store.journal import Journal, interrupted
from envmedic.engine.store.layout import Store, new_transaction_id
from envmedic.engine.store.lock import locked
from envmedic.engine.store.swap import Point, no_point, refuse_link, swap, sync
from envmedic.engine.store.uv_lock import uv_locked
from envmedic.engine.transaction import snapshot
from envmedic.engine.transaction.install import NothingChanged, install
from envmedic.engine.transaction.preflight import Capabilities, preflight
from envmedic.engine.transaction.repair_stages import Run, add_notes, confirm, fetch, reproduce
from envmedic.engine.transaction.rounds import repair
from envmedic.engine.verify.verdict import PROOF
from envmedic.engine.witness import asking as witnesses
from envmedic.errors import (
    ChecksFailed,
    EnvmedicError,
    InternalError,
    PreflightError,
    RecoveryNeeded,
    RepairDeclined,
    StalePlan,
    exhausted,
)
from envmedic.model.base import to_json
from envmedic.model.events import EventStream, Notice, TransactionStarted
from envmedic.model.pins import ProjectEdit
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions, CheckRunner, EnginePorts, Exchange, Runner
from envmedic.model.record import KeepLimits, Record
from envmedic.tree import fingerprint as tree
from envmedic.wording import counted


def apply(
    plan: Plan,
    *,
    options: ApplyOptions,
    ports: EnginePorts,
    checks: CheckRunner,
    stream: EventStream,
    cancel: Cancel = never,
    point: Point = no_point,
) -> Record:
    """Carry out `plan`. Afterwards the environment is the repaired one, or exactly the one from before.

    A transaction that has begun returns its record, also when it fails: `Record.failure` then holds the error with
    its exit code, and the environment is unchanged. Errors before that point are raised: ChecksFailed (GPU checks
    without a GPU), PreflightError, EnvironmentBusy, StalePlan, RepairDeclined, NetworkError, IntegrityError,
    Interrupted. `cancel` is polled often and stops the transaction until the exchange.
    """
    interruption = Interruption(cancel)
    # The real path: a prefix reached through a link must find the same store and lock as the prefix itself.
    session = TransactionContext(Store.of(Path(plan.real_prefix)), options, ports, checks, stream, interruption, point)
    with interruption.watching():
        try:
            return _apply(session, plan)
        except OSError as error:  # no transaction has begun yet; later errors end in its record
            raise _of_system(error) from error


def _apply(session: TransactionContext, plan: Plan) -> Record:
    _require_gpu(session, plan)
    # Preflight measures the prefix, which must not be half of an interrupted exchange. The lock is taken only where
    # there is something to recover: preflight can refuse without creating a store beside the environment.
    if interrupted(session.store):
        with locked(session.store):
            settle(session)
    how = _preflight(session, plan)
    for told in how.seen:
        session.notice("exchange", told)
    with locked(session.store) as lock:
        settle(session)  # another process may have been killed between preflight and the lock
        confirm(session, plan)
        edit = _project_edit(session, plan)
        if edit is not None:
            project_files.require_as_planned(edit)
        fetch(session, plan)
        original = _fingerprint(session, plan)
        return _carry_out(_begin(session, plan, how, lock, original))


def _project_edit(session: TransactionContext, plan: Plan) -> ProjectEdit | None:
    """The edit of manifest and lock that goes with `plan`; None where the user does not want it, or there is none."""
    with session.interruption.at_once():
        wanted = plan.project_edit is not None and session.ports.edits_project(plan.project_edit)
    return plan.project_edit if wanted else None


def _require_gpu(session: TransactionContext, plan: Plan) -> None:
    """Refuse GPU checks without a GPU before any download, unless the user waived them."""
    if not plan.gpu_checks or session.options.no_gpu:
        return
    visible, why = session.ports.gpu_visible()
    if not visible:
        raise ChecksFailed(
            "The repair must be proven on a GPU, and none can be used",
            cause=why,
            hint="Run where a GPU is free, or accept an unproven repair with --no-gpu",
        )
    if why:
        session.stream.emit(Notice(code="gpu-full", message=why, level="warning"))


def _preflight(session: TransactionContext, plan: Plan) -> Capabilities:
    with session.stage("preflight"):
        return preflight(session.prefix, plan, session.options, processes=session.ports.processes(session.prefix))


def _fingerprint(session: TransactionContext, plan: Plan) -> tree.Fingerprint:
    """Fingerprint the environment right before cloning, so that a change during the cloning shows too.

    Raises StalePlan when the environment is not the one of the plan.
    """
    with session.stage("fingerprint"):
        found = tree.fingerprint(session.prefix)
        if plan.purpose != "snapshot" and tree.digest_of(found) != plan.environment_digest:
            raise StalePlan(
                f"{session.prefix} has changed since the plan was made",
                cause=f"The plan was made at {plan.created}",
                hint="Make a new plan with `envmedic plan`",
            )
    return found


def _begin(session: TransactionContext, plan: Plan, how: Capabilities, lock: int, original: tree.Fingerprint) -> Run:
    """Create the directory of the transaction in one rename; from here on there is a record."""
    transaction_id, started = new_transaction_id(), journals.now()
    journal = Journal(
        transaction=transaction_id,
        parent=marker.read(session.prefix),
        prefix=str(session.prefix),
        state="cloning",
        method=how.exchange,
        clone=how.clone,
        staging=how.staging,
        started=started,
        updated=started,
    )
    record = Record(
        transaction=transaction_id,
        parent=journal.parent,
        envmedic=__version__,
        prefix=plan.prefix,
        state="cloning",
        environment="unchanged",
        started=started,
        plan=plan,
        clone=how.clone,
        staging=how.staging,
        exchange=how.exchange,
        before=session.ports.distributions(session.prefix),
        notes=how.notes,
    )
    session.point("before-create")
    # One rename puts all three files in place: recovery never finds a directory without a journal.
    directory = session.store.create(
        {
            "journal.json": journals.encode(journal),
            "plan.json": to_json(plan).encode() + b"\n",
            "record.json": to_json(record).encode() + b"\n",
        },
        transaction=transaction_id,
    )
    session.point("created")
    transaction = OpenTransaction(session, directory, journal, record)
    runner = _runner(transaction, how, lock, directory.tree)
    return Run(session, transaction, how, lock, plan, runner, original, _make_clone, _original)


def _runner(transaction: OpenTransaction, how: Capabilities, lock: int, clone_path: Path) -> Runner:
    session = transaction.session
    poll = session.interruption.poll
    inner: Runner
    if how.staging == "namespace":
        inner = NamespaceRunner(session.prefix, clone_path, pid_namespace=how.pid_namespace, inherit=[lock], poll=poll)
    else:
        inner = RelocateRunner(clone_path, inherit=[lock], poll=poll)
    # Commands inherit the lock's descriptor: while one of them survives a killed envmedic, nobody else may begin.
    return ActivatedRunner(inner, clone_path, session.interruption)


def _take_stages(run: Run) -> None:
    """Take everything up to the exchange. What the plan cannot affect is found meanwhile, where not all is imported."""
    narrowed = run.plan.changes and run.session.options.profile != "full"
    moved = [change.name for change in run.plan.changes]
    with run.session.ports.foresee(run.session.prefix, moved) if narrowed else nullcontext():
        for stage in STAGES if run.plan.purpose == "repair" else INSTALL_STAGES:
            stage(run)


def _carry_out(run: Run) -> Record:
    transaction = run.transaction
    with ExitStack() as stack:
        try:
            stack.enter_context(transaction.opened())
            _announce(run)
            if run.plan.purpose == "snapshot":
                snapshot.take(run)
                return run.transaction.finish("done")
            _take_stages(run)
            uv = _exchange(run)
        except NothingChanged:
            with recoverable(run.session.prefix):
                return drop(run.transaction, None)
        except RecoveryNeeded:
            raise  # the exchange stopped halfway: both trees are needed
        except EnvmedicError as error:
            return _drop(run, error)
        except OSError as error:
            return _drop(run, exhausted(error) or _of_system(error))
        except BaseException as error:
            spent = exhausted(error)
            if spent is not None:
                return _drop(run, spent)
            # A bug, or an exit that somebody raised. The marker decides, not the line that failed: the exchange may
            # have succeeded just before. An exchanged environment is left to recovery, which smoke-tests it first.
            if not _marked(run):
                _drop(run, InternalError("A bug of envmedic ended the transaction"))
            raise
        return _finish(run, uv)


def _announce(run: Run) -> None:
    run.session.emit(
        TransactionStarted(
            prefix=run.plan.prefix,
            directory=str(run.transaction.directory.path),
            clone=run.how.clone,
            staging=run.how.staging,
            exchange=run.how.exchange,
            notes=run.transaction.record.notes,
        )
    )


def _clone(run: Run) -> None:
    session, directory = run.session, run.transaction.directory
    run.original.save(directory.fingerprint)
    session.point("fingerprinted")
    _make_clone(run)
    run.transaction.move("repairing")


def _make_clone(run: Run) -> None:
    session = run.session

    def on_progress(files: int) -> None:
        session.point("cloning")
        session.progress("clone", "files", files, run.how.size.files)

    with session.stage("clone"):
        made = clone(session.prefix, run.transaction.directory.tree, run.how.clone, on_progress=on_progress)
    # What preflight could not foresee, such as hard links that the kernel refuses
    losses.refuse(session.prefix, made.lost, session.options.allow)
    add_notes(run, losses.notes(made.lost))


def _original(run: Run) -> Runner:
    session, directory = run.session, run.transaction.directory
    # in the trash from its beginning: it goes with the end of the transaction, or of the recovery after a kill
    copy = directory.trash / "original"
    if not copy.exists():
        if not directory.trash.is_dir():
            make_directory(directory.trash)

        def on_progress(_files: int) -> None:
            session.point("cloning-original")
            session.interruption.poll()

        clone(session.prefix, copy, run.how.clone, on_progress=on_progress)
    return _runner(run.transaction, run.how, run.lock, copy)


def _ask(run: Run) -> None:
    """Ask before the exchange, if the front end wants that. `_compare` comes later and sees changes made meanwhile."""
    session = run.session
    ask = session.ports.before_exchange
    if ask is None:
        return
    session.point("asking")
    users = session.ports.processes(session.prefix)
    with session.interruption.at_once():
        agreed = ask(Exchange(run.transaction.record, str(run.transaction.directory.tree), users))
    session.interruption.poll()
    if not agreed:
        raise RepairDeclined("The exchange was declined", cause="The repaired copy had passed its checks")


def _relocate(run: Run) -> None:
    """After relocation: rewrite the text files of the clone so that they name the prefix."""
    if run.how.staging == "relocate":
        clone_path = run.transaction.directory.tree
        relocate.rewrite(clone_path, clone_path, run.session.prefix)
        run.session.point("relocated")


def _mark(run: Run) -> None:
    directory = run.transaction.directory
    marker.write(directory.tree, directory.transaction)
    run.session.point("marked")


def _ask_others(run: Run) -> None:
    """Ask other machines that share the environment which programs use it, before anything is done."""
    witnesses.ask_use(run.transaction)


def _prove_elsewhere(run: Run) -> None:
    """Have other machines that share the environment prove the repaired clone too."""
    witnesses.prove(run.transaction, run.checks, [item for item in run.before if item.role in PROOF])


STAGES: tuple[Callable[[Run], None], ...] = (
    _ask_others, _clone, reproduce, repair, _prove_elsewhere, _ask, _relocate, _mark,
)  # fmt: skip


INSTALL_STAGES: tuple[Callable[[Run], None], ...] = (_clone, install, _ask, _relocate, _mark)


# The order is part of the contract: the clone is complete and marked, then durable, then the journal says `ready`, and
# only then uv's lock is taken, since recovery looks for a lock file that a kill leaves. Nothing slow is left to do
# between the comparison and the exchange.
def _exchange(run: Run) -> ExitStack:
    """Exchange the trees unless the original has changed; returns what holds uv's lock of both."""
    session, directory = run.session, run.transaction.directory
    with ExitStack() as uv:
        with session.stage("fingerprint"):
            repaired = _make_ready(run)
            refuse_link(session.prefix)
            uv.enter_context(uv_locked(session, directory))
            _compare(run, repaired)
        session.interruption.commit()  # the last moment at which a request to stop counts
        swap(session.prefix, directory, run.how.exchange, session.point)
        return uv.pop_all()


def _make_ready(run: Run) -> tree.Fingerprint:
    """Make the clone and its record durable before the exchange; returns the fingerprint of the clone."""
    session, directory = run.session, run.transaction.directory
    repaired = tree.fingerprint(directory.tree)
    repaired.save(directory.live_fingerprint)
    run.transaction.note(after=session.ports.distributions(directory.tree))
    edit = _project_edit(session, run.plans[-1])  # it is that of all plans before it too
    if edit is not None:
        project_files.prepare(run.transaction, edit)
    run.transaction.save()
    # One syncfs instead of an fsync per file: the fingerprints and thousands of new files at once.
    sync_filesystem(directory.path)
    session.point("synced")
    run.transaction.move("ready")
    return repaired


def _compare(run: Run, repaired: tree.Fingerprint) -> None:
    """Refuse the exchange if the original changed since it was cloned: those changes would be lost.

    Files that both trees share by hard links need no `stat`: the fingerprint of the clone has them.
    """
    now = tree.fingerprint(run.session.prefix, twin=repaired)
    names = tree.compare(run.original, now).names
    run.session.point("compared")
    if names:
        raise changed_meanwhile(run.session.prefix, names, "while its copy was being repaired")


def _finish(run: Run, uv: ExitStack) -> Record:
    """The clone is live: smoke-test it, keep it or put the old tree back, and prune old generations.

    `uv` holds uv's lock of both trees, until the old tree is known to have everything that was written into it.
    """
    session, transaction = run.session, run.transaction
    with recoverable(session.prefix):
        with uv:
            late = late_writes(run.original, transaction.directory.tree, session.prefix)
            session.point("compared-again")
            if late:
                failure = changed_meanwhile(session.prefix, late, "while it was exchanged")
                session.notice("exchanging-back", f"{failure.summary}: it is put back")
                exchange_again(transaction, locked=True)
        if late:
            return set_aside(transaction, failure)
        # Names first: a journal that says `exchanged` over an exchange that the disk forgot would misdirect recovery.
        sync(session.prefix, transaction.directory)
        transaction.move("exchanged")
        told = _too_late(session, "The repaired environment is in place already: finishing")
        runner = DirectRunner(session.prefix, inherit=[run.lock])
        record = conclude(transaction, ActivatedRunner(runner, session.prefix, session.interruption))
        if not told:
            _too_late(session, "It was too late to stop: the transaction has been finished")
        return _pruned(transaction) or record


def _pruned(transaction: OpenTransaction) -> Record | None:
    """Prune old generations; the record with a note where one stays, else None. The repair has ended well by then."""
    session = transaction.session
    notes: tuple[str, ...]
    try:
        others = witnesses.kept_for_others(transaction)
        # a snapshot was asked for by name, and only goes by name
        limits = KeepLimits(count=session.options.keep, snapshots=False)
        if others is not None and surplus(session.store, limits):
            notes = (others,)
        else:
            notes = tuple(map(spared_told, prune_trees(session.store, limits, session.emit, session.point).spared))
        code = "kept-files"
    except OSError as error:
        why = not_pruned(session.store, error)
        notes, code = (f"{why.summary}: {why.cause}. {why.hint}",), "trash-left"
    if not notes:
        return None
    for told in notes:
        session.notice(code, told)
    transaction.note(notes=(*transaction.record.notes, *notes))
    try:
        transaction.save()
    except OSError as error:
        session.notice("trash-left", f"The record could not be written once more: {error}")
    return transaction.record


def _too_late(session: TransactionContext, message: str) -> bool:
    """Explain to a user who asked to stop why the transaction goes on; returns whether one did."""
    if session.interruption.requested:
        session.notice("too-late-to-stop", message)
    return session.interruption.requested


def _marked(run: Run) -> bool:
    """Whether the live tree is this transaction's: its clone, or the one that it is a snapshot of."""
    return marker.read(run.session.prefix) == run.transaction.directory.transaction


def _drop(run: Run, failure: EnvmedicError) -> Record:
    """End the transaction with the environment unchanged. Raises RecoveryNeeded if it failed after the exchange."""
    with recoverable(run.session.prefix):
        if _marked(run):
            raise unfinished(run.session.prefix, failure.cause or failure.summary) from failure
        _note_changes(run)
        return drop(run.transaction, failure)


def _note_changes(run: Run) -> None:
    """Report changes of the live environment: by another program, or by a step through a hard link of the clone."""
    run.session.interruption.shield()
    try:
        names = tree.changes(run.original, run.session.prefix).names
    except OSError as error:
        run.transaction.note(notes=(*run.transaction.record.notes, f"It could not be compared at the end: {error}"))
        return
    if names:
        text = (
            f"{counted(len(names), 'file')} of {run.session.prefix} changed during the repair: "
            f"{', '.join(tree.readable(names[:LISTED]))}"
        )
        run.transaction.note(notes=(*run.transaction.record.notes, text))
        run.session.notice("changed-meanwhile", text)


def _of_system(error: OSError) -> PreflightError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return PreflightError(
            "There is no room left beside the environment" if error.errno == errno.ENOSPC else "The quota is used up",
            cause=f"{error.filename}: {error.strerror}" if error.filename else str(error),
            hint="Make room there; `envmedic prune` removes kept generations",
        )
    return PreflightError(
        f"The repair cannot go on: {error.strerror}",
        cause=f"{error.filename}: {error}" if error.filename else str(error),
        hint="Check free space and permissions beside the environment",
    )
