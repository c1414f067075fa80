"""Finish a transaction: drop the clone, or smoke-test the swapped environment and keep it.

The transaction itself and recovery after a crash share this code, so both end alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec

from envmedic.engine.generations import project_files
from envmedic.engine.generations.only_copies import only_copies, only_copies_told
from envmedic.engine.stage import shebangs
from envmedic.engine.store import marker, retention
from envmedic.engine.store.context import OpenTransaction
from envmedic.engine.store.swap import swap, sync
from envmedic.engine.store.uv_lock import uv_locked
from envmedic.engine.verify.verdict import FAILURES
from envmedic.engine.witness import asking as witnesses
from envmedic.errors import (
    RECOVERABLE,
    ChecksFailed,
    EnvironmentBusy,
    EnvmedicError,
    Exhausted,
    InternalError,
    PreflightError,
    RecoveryNeeded,
    exhausted,
)
from envmedic.model.checks import Check, Outcome
from envmedic.model.events import CheckFinished
from envmedic.model.ports import Runner
from envmedic.model.record import Record, State
from envmedic.model.registries.check_kinds import CHECKS
from envmedic.tree.fingerprint import readable

_SMOKE_LIMIT_S = 120.0


@contextmanager
def recoverable(prefix: Path) -> Iterator[None]:
    """Turn a system error in the middle of finishing into RecoveryNeeded: `envmedic recover` continues from there."""
    try:
        yield
    except (OSError, MemoryError, SystemError, Exhausted) as error:
        spent = exhausted(error)
        if spent is None and isinstance(error, SystemError):
            raise  # CPython raises SystemError for exhausted memory too; any other one is a bug
        raise unfinished(prefix, str(spent or error)) from error


def unfinished(prefix: Path, cause: str) -> RecoveryNeeded:
    """The error for a transaction that stopped before its end, with the cause; `recover` finishes it."""
    return RecoveryNeeded(
        f"A transaction on {prefix} could not be brought to its end",
        cause=cause,
        hint="Mend that, then run `envmedic recover`; until then nothing is lost",
        environment=RECOVERABLE,
    )


def drop(transaction: OpenTransaction, failure: EnvmedicError | None) -> Record:
    """End a transaction whose clone has nothing that is needed: delete it, leave the environment unchanged.

    Without a `failure` there was nothing to do.
    """
    transaction.session.interruption.shield()  # a second Ctrl-C must not leave the clone behind
    if marker.read(transaction.session.prefix) == transaction.directory.transaction:
        raise InternalError("The clone to be dropped is live", environment=RECOVERABLE)
    project_files.restore(transaction)
    project_files.forget(transaction)
    transaction.discard_tree()
    transaction.empty_trash()  # before the journal is written: the disk may be full
    record = transaction.finish("aborted", failure=failure)
    try:
        retention.trim(transaction.session.store, transaction.session.point)
    except OSError as error:  # the next transaction tries again
        transaction.session.notice("trash-left", f"Files of earlier transactions could not be deleted: {error}")
    return record


def conclude(transaction: OpenTransaction, runner: Runner, *, redo: bool = False) -> Record:
    """End a transaction whose clone is at the prefix: keep it if it works there, else put the old tree back."""
    failure = smoke(transaction, runner) or witnesses.look(transaction, _in_place(transaction))
    if failure is None:
        if redo:
            note_only_copies(transaction, "done")
        project_files.place(transaction)
        return transaction.finish("done")
    session = transaction.session
    session.notice("exchanging-back", f"{failure.summary}: the environment as it was is put back")
    exchange_again(transaction)
    return set_aside(transaction, failure, keep=redo)


def exchange_again(transaction: OpenTransaction, *, locked: bool = False) -> None:
    """Exchange the trees of a transaction that must finish, durably; `locked` if the caller holds uv's lock of both.

    Raises RecoveryNeeded where that is impossible for now, and OSError.
    """
    session, directory = transaction.session, transaction.directory
    try:
        with nullcontext() if locked else uv_locked(session, directory):
            swap(session.prefix, directory, transaction.journal.method, session.point)
    except (EnvironmentBusy, PreflightError) as error:  # which say that the environment is unchanged
        raise unfinished(session.prefix, f"{error.summary}: {error.cause}") from error
    sync(session.prefix, directory)


def set_aside(transaction: OpenTransaction, failure: EnvmedicError, *, keep: bool = False) -> Record:
    """End a transaction whose clone was at the prefix and no longer is: `undone` if the clone is kept, else as `drop`.

    It is kept with `keep`, and for files written into it while it was live, which exist nowhere else: the record then
    names them. Raises OSError.
    """
    written = note_only_copies(transaction, "undone")
    project_files.restore(transaction)
    return transaction.finish("undone", failure=failure) if keep or written else drop(transaction, failure)


def note_only_copies(transaction: OpenTransaction, state: State) -> bool:
    """Note the files that only the tree set aside in `state` has, and where it is; returns whether there are any."""
    aside, session = transaction.directory.tree, transaction.session
    if not aside.is_dir():  # a crash came after the decision to drop it
        return False
    names = readable(only_copies(transaction.directory, state, session.prefix))
    if names:
        told = f"{only_copies_told(aside, names)}. They stay there: no repair removes them"
        transaction.note(notes=(*transaction.record.notes, told))
        session.notice("kept-files", told)
    return bool(names)


def smoke(transaction: OpenTransaction, runner: Runner) -> EnvmedicError | None:
    """Check the environment at its true path; returns why it does not work there, or None."""
    session = transaction.session
    with session.stage("smoke"):
        try:
            outcomes = (*session.checks(_in_place(transaction), runner, "smoke", session.emit), *_scripts(transaction))
        except (EnvmedicError, OSError) as error:
            return ChecksFailed(
                "The checks at the environment's own path could not run",
                cause=_why(error),
                hint="Mend that, then run the same command again",
            )
    transaction.note(smoke=outcomes)
    broken = worse(transaction.record.checks_after, outcomes)
    if not broken:
        return None
    return ChecksFailed(
        "The repaired environment fails at its own path what it passed in the clone",
        cause=f"{broken[0].check}: {broken[0].reason}",
        hint=_hint(broken),
        details=tuple(f"{outcome.check}: {outcome.status} {outcome.reason}" for outcome in broken),
    )


def _in_place(transaction: OpenTransaction) -> tuple[Check, ...]:
    """The checks of the repaired environment in its place."""
    plans = (transaction.record.plan, *transaction.record.extensions)
    return smoke_checks(check for plan in plans for check in plan.checks)


def _hint(broken: Sequence[Outcome]) -> str:
    """The next step. A killed check tells nothing about the environment."""
    if any(outcome.signal == "SIGKILL" for outcome in broken):
        return "A check was killed, as the kernel does where memory has run out: give it more, then do the same again"
    return "Try --staging relocate (or namespace), and report this"


def _why(error: EnvmedicError | OSError) -> str:
    """The error with its cause, if known."""
    cause = error.cause if isinstance(error, EnvmedicError) else None
    return str(error) if cause is None else f"{error}: {cause}"


def smoke_checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    """The checks of the live environment: the proofs and the imports of changed distributions, on the CPU, once each.

    The tree was verified already; only its path is new. Imports of unchanged distributions saw the same files at the
    same path before (namespace), or files that relocation does not rewrite.
    """
    chosen = {}
    for check in checks:
        if check.gpu and CHECKS[check.name].devices == "gpu":
            continue  # on the CPU they would be skipped, and the GPU has verified the same files
        # The user's own command is not run again: it may take hours, or write results a second time.
        if check.name != "command" and (check.in_place or check.role in {"playbook", "reproduction"}):
            quick = msgspec.structs.replace(check, gpu=False, timeout_s=min(check.timeout_s, _SMOKE_LIMIT_S))
            chosen[check.name, check.arguments] = quick
    return tuple(chosen.values())


def _scripts(transaction: OpenTransaction) -> tuple[Outcome, ...]:
    """Check that scripts start, if relocation has rewritten them."""
    if transaction.journal.staging != "relocate":
        return ()
    session = transaction.session
    outcome = shebangs.check(session.prefix, transaction.directory.tree, session.store.root)
    session.emit(CheckFinished(phase="smoke", outcome=outcome))
    return (outcome,)


def worse(before: Iterable[Outcome], after: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """The outcomes that fail now and did not fail before."""
    failed = {outcome.key for outcome in before if outcome.status in FAILURES}
    return tuple(outcome for outcome in after if outcome.status in FAILURES and outcome.key not in failed)
