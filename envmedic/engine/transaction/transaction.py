"""A repair as a transaction: clone, repair and prove the clone, exchange, prove it in place, keep the old tree.

`apply` is a list of small stages over a `Run`. Whatever goes wrong before the exchange ends in
`settling.drop`; from the exchange on the transaction finishes, whoever asks to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from envmedic import __version__
from envmedic.engine.clone.clone import clone
from envmedic.engine.fs.durable import give
from envmedic.engine.fs.exchange import sync_filesystem
from envmedic.engine.generations.finish import conclude, drop, recoverable, unfinished
from envmedic.engine.generations.generations import prune_trees
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
from envmedic.engine.store.swap import Point, no_point, swap, sync
from envmedic.engine.transaction.preflight import Capabilities, preflight
from envmedic.engine.transaction.repair_stages import Run, confirm, fetch, reproduce
from envmedic.engine.transaction.rounds import repair
from envmedic.errors import (
    ChecksFailed,
    EnvironmentBusy,
    EnvmedicError,
    InternalError,
    PreflightError,
    RecoveryNeeded,
    RepairDeclined,
    StalePlan,
    exhausted,
)
from envmedic.model.base import to_json
from envmedic.model.events import EventStream, TransactionStarted
from envmedic.model.plan import Plan
from envmedic.model.ports import ApplyOptions, CheckRunner, EnginePorts, Exchange, Runner
from envmedic.model.record import Record
from envmedic.tree import fingerprint as tree

_LISTED = 10


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
    """Carry `plan` out; the environment is the repaired one afterwards, or exactly as it was.

    Once a transaction has begun its record is returned, whatever became of it: `Record.failure` holds
    the error with its exit code when the environment is unchanged. Before that errors are raised:
    ChecksFailed (GPU checks without a GPU), PreflightError, EnvironmentBusy, StalePlan, RepairDeclined,
    NetworkError, IntegrityError, Interrupted. `cancel` is asked often and stops what is still stoppable.
    """
    interruption = Interruption(cancel)
    session = TransactionContext(Store.of(Path(plan.real_prefix)), options, ports, checks, stream, interruption, point)
    with interruption.watching():
        try:
            return _apply(session, plan)
        except OSError as error:  # before a transaction began; later ones end in its record
            raise _of_system(error) from error


def _apply(session: TransactionContext, plan: Plan) -> Record:
    _require_gpu(session, plan)
    if interrupted(session.store):
        with locked(session.store):
            settle(session)
    how = _preflight(session, plan)
    with locked(session.store) as lock:
        settle(session)
        confirm(session, plan)
        try:
            fetch(session, plan)
            original = _fingerprint(session, plan)
            return _carry_out(_begin(session, plan, how, lock, original))
        finally:
            session.store.drop_wheels()


def _require_gpu(session: TransactionContext, plan: Plan) -> None:
    """Before anything is downloaded: the checks that need a GPU must have one, or the user's leave to skip."""
    if not plan.gpu_checks or session.options.no_gpu:
        return
    visible, why = session.ports.gpu_visible()
    if not visible:
        raise ChecksFailed(
            "The repair must be proven on a GPU, and none is visible",
            cause=why,
            hint="Run on the machine with the GPU, or accept an unproven repair with --no-gpu",
        )


def _preflight(session: TransactionContext, plan: Plan) -> Capabilities:
    with session.stage("preflight"):
        return preflight(session.prefix, plan, session.options, processes=session.ports.processes(session.prefix))


def _fingerprint(session: TransactionContext, plan: Plan) -> tree.Fingerprint:
    """The environment right before it is cloned, so that a change during the cloning shows too.

    Raises StalePlan when it is not as it was planned for.
    """
    with session.stage("fingerprint"):
        found = tree.fingerprint(session.prefix)
        if tree.digest_of(found) != plan.environment_digest:
            raise StalePlan(
                f"{session.prefix} has changed since the plan was made",
                cause=f"The plan was made at {plan.created}",
                hint="Make a new plan with `envmedic plan`",
            )
    return found


def _begin(session: TransactionContext, plan: Plan, how: Capabilities, lock: int, original: tree.Fingerprint) -> Run:
    """Make the transaction's directory, all at once; from here on there is a record."""
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
    return Run(session, transaction, how, lock, plan, _runner(transaction, how, lock), original, _make_clone)


def _runner(transaction: OpenTransaction, how: Capabilities, lock: int) -> Runner:
    session, clone_path = transaction.session, transaction.directory.tree
    poll = session.interruption.poll
    inner: Runner
    if how.staging == "namespace":
        inner = NamespaceRunner(session.prefix, clone_path, pid_namespace=how.pid_namespace, inherit=[lock], poll=poll)
    else:
        inner = RelocateRunner(clone_path, inherit=[lock], poll=poll)
    return ActivatedRunner(inner, clone_path, session.interruption)


def _carry_out(run: Run) -> Record:
    transaction, session = run.transaction, run.session
    with ExitStack() as stack:
        try:
            stack.enter_context(transaction.opened())
            _announce(run)
            for stage in STAGES:
                stage(run)
            session.interruption.commit()
            swap(session.prefix, transaction.directory, run.how.exchange, session.point)
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
            if not _exchanged(run):
                _drop(run, InternalError("A bug of envmedic ended the transaction"))
            raise
        return _finish(run)


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
    _save_fingerprint(run, run.original, directory.fingerprint)
    session.point("fingerprinted")
    _make_clone(run)
    run.transaction.move("repairing")


def _make_clone(run: Run) -> None:
    session = run.session

    def on_progress(files: int) -> None:
        session.point("cloning")
        session.progress("clone", "files", files, run.how.size.files)

    with session.stage("clone"):
        clone(session.prefix, run.transaction.directory.tree, run.how.clone, on_progress=on_progress)


def _save_fingerprint(run: Run, fingerprint: tree.Fingerprint, path: Path) -> None:
    fingerprint.save(path)
    give(path, run.session.store.owner)


def _ask(run: Run) -> None:
    """Ask once more, where somebody wants to be asked. What changes in the environment meanwhile is seen afterwards."""
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
    """After staging at the clone's own path: let its text files name the prefix."""
    if run.how.staging == "relocate":
        clone_path = run.transaction.directory.tree
        relocate.rewrite(clone_path, clone_path, run.session.prefix)
        run.session.point("relocated")


def _mark(run: Run) -> None:
    directory = run.transaction.directory
    marker.write(directory.tree, directory.transaction, run.session.store.owner)
    run.session.point("marked")


def _compare(run: Run) -> None:
    """The original must be what was cloned, or changes made meanwhile would be lost.

    The clone goes first: what it still shares with the original by hard links is then known of both.
    """
    directory = run.transaction.directory
    with run.session.stage("fingerprint"):
        repaired = tree.fingerprint(directory.tree)
        _save_fingerprint(run, repaired, directory.live_fingerprint)
        now = tree.fingerprint(run.session.prefix, twin=repaired)
        names = tree.compare(run.original, now).names
    if names:
        raise EnvironmentBusy(
            f"{run.session.prefix} was changed while its copy was being repaired",
            cause=f"{len(names)} files differ, such as {names[0]}",
            hint="The environment is as those changes left it. Run the repair again when nothing else works on it",
            details=names[:_LISTED],
        )


def _make_ready(run: Run) -> None:
    """Make the clone and what is known of it durable before the exchange."""
    session, directory = run.session, run.transaction.directory
    run.transaction.note(after=session.ports.distributions(directory.tree))
    run.transaction.save(synced=False)
    sync_filesystem(directory.path)
    session.point("synced")
    run.transaction.move("ready")


STAGES: tuple[Callable[[Run], None], ...] = (
    _clone, reproduce, repair, _ask, _relocate, _mark, _compare, _make_ready,
)  # fmt: skip


def _finish(run: Run) -> Record:
    """The clone is live: prove it in place, keep it or put the old tree back, and delete what is too old."""
    session, transaction = run.session, run.transaction
    with recoverable(session.prefix):
        sync(session.prefix, transaction.directory)
        transaction.move("exchanged")
        told = _too_late(session, "The repaired environment is in place already: finishing")
        runner = DirectRunner(session.prefix, inherit=[run.lock])
        record = conclude(transaction, ActivatedRunner(runner, session.prefix, session.interruption))
        if not told:
            _too_late(session, "It was too late to stop: the transaction has been finished")
        prune_trees(session.store, session.options.keep, session.emit, session.point)
    return record


def _too_late(session: TransactionContext, message: str) -> bool:
    """Tell somebody who asked to stop why nothing was stopped; returns whether somebody did."""
    if session.interruption.requested:
        session.notice("too-late-to-stop", message)
    return session.interruption.requested


def _exchanged(run: Run) -> bool:
    return marker.read(run.session.prefix) == run.transaction.directory.transaction


def _drop(run: Run, failure: EnvmedicError) -> Record:
    """End the transaction with the environment as it was. Raises RecoveryNeeded where it failed right after the exchange."""
    with recoverable(run.session.prefix):
        if _exchanged(run):
            raise unfinished(run.session.prefix, failure.cause or failure.summary) from failure
        _note_changes(run)
        return drop(run.transaction, failure)


def _note_changes(run: Run) -> None:
    """Say so when the environment is not as it was: by somebody, or by a command through a hard link of the clone."""
    run.session.interruption.shield()
    try:
        names = tree.changes(run.original, run.session.prefix).names
    except OSError as error:
        run.transaction.note(notes=(*run.transaction.record.notes, f"It could not be compared at the end: {error}"))
        return
    if names:
        text = f"{len(names)} files of {run.session.prefix} changed during the repair: {', '.join(names[:_LISTED])}"
        run.transaction.note(notes=(*run.transaction.record.notes, text))
        run.session.notice("changed-meanwhile", text)


def _of_system(error: OSError) -> PreflightError:
    return PreflightError(
        f"The repair cannot go on: {error.strerror}",
        cause=f"{error.filename}: {error}" if error.filename else str(error),
        hint="Check free space and permissions beside the environment",
    )
