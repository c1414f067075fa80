"""The two ends of a transaction: the clone is dropped, or the exchanged environment is proven and kept.

Used by the transaction itself and by recovery after a crash, so both end alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from envmedic.engine.store import marker
from envmedic.engine.store.context import OpenTransaction
from envmedic.engine.store.swap import swap, sync
from envmedic.engine.verify.verdict import FAILURES
from envmedic.errors import (
    RECOVERABLE,
    ChecksFailed,
    EnvmedicError,
    Exhausted,
    InternalError,
    RecoveryNeeded,
    exhausted,
)
from envmedic.model.check_kinds import CHECKS
from envmedic.model.checks import Check, Outcome
from envmedic.model.events import CheckFinished
from envmedic.model.ports import Runner
from envmedic.model.record import Record

_SMOKE_LIMIT_S = 120.0


@contextmanager
def recoverable(prefix: Path) -> Iterator[None]:
    """Tell of an error of the system in the middle of settling as something that `recover` settles."""
    try:
        yield
    except (OSError, MemoryError, SystemError, Exhausted) as error:
        spent = exhausted(error)
        if spent is None and isinstance(error, SystemError):
            raise
        raise unfinished(prefix, str(spent or error)) from error


def unfinished(prefix: Path, cause: str) -> RecoveryNeeded:
    """A transaction that `recover` settles, and what kept it from its end."""
    return RecoveryNeeded(
        f"A transaction on {prefix} could not be brought to its end",
        cause=cause,
        hint="Mend that, then run `envmedic recover`; until then nothing is lost",
        environment=RECOVERABLE,
    )


def drop(transaction: OpenTransaction, failure: EnvmedicError) -> Record:
    """End a transaction whose clone is not at the prefix: the clone goes, the environment is as it was."""
    transaction.session.interruption.shield()
    if marker.read(transaction.session.prefix) == transaction.directory.transaction:
        raise InternalError("The clone to be dropped is live", environment=RECOVERABLE)
    transaction.discard_tree()
    transaction.empty_trash()  # first: the disk may be full, and the journal must be written
    return transaction.finish("aborted", failure=failure)


def conclude(transaction: OpenTransaction, runner: Runner, *, redo: bool = False) -> Record:
    """End a transaction whose clone is at the prefix: it stays if it works there, else the old tree comes back."""
    failure = smoke(transaction, runner)
    if failure is None:
        return transaction.finish("done")
    session = transaction.session
    session.notice("exchanging-back", f"{failure.summary}: the environment as it was is put back")
    swap(session.prefix, transaction.directory, transaction.journal.method, session.point)
    sync(session.prefix, transaction.directory)
    return transaction.finish("undone", failure=failure) if redo else drop(transaction, failure)


def smoke(transaction: OpenTransaction, runner: Runner) -> EnvmedicError | None:
    """Check the environment at its true path; returns why it does not work there, or None."""
    session = transaction.session
    plans = (transaction.record.plan, *transaction.record.extensions)
    checks = smoke_checks(check for plan in plans for check in plan.checks)
    with session.stage("smoke"):
        try:
            outcomes = (*session.checks(checks, runner, "smoke", session.emit), *_scripts(transaction))
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


def _hint(broken: Sequence[Outcome]) -> str:
    """The next step: a check that was killed says nothing of the environment."""
    if any(outcome.signal == "SIGKILL" for outcome in broken):
        return "A check was killed, as the kernel does where memory has run out: give it more, then do the same again"
    return "Try --staging relocate (or namespace), and report this"


def _why(error: EnvmedicError | OSError) -> str:
    """What happened, and the cause of it where that is known."""
    cause = error.cause if isinstance(error, EnvmedicError) else None
    return str(error) if cause is None else f"{error}: {cause}"


def smoke_checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    """What is run on the live environment: the proof, and imports of what was changed, on the CPU, once each.

    It is the tree that was verified; all that is new is its path. Imports of what no step touched saw the same
    files at the same path before, or, staged elsewhere, files that no rewriting touches.
    """
    chosen = {}
    for check in checks:
        if check.gpu and CHECKS[check.name].devices == "gpu":
            continue  # they have nothing to say on the CPU, and the GPU saw the same files
        if check.name != "command" and (check.in_place or check.role in {"playbook", "reproduction"}):
            quick = msgspec.structs.replace(check, gpu=False, timeout_s=min(check.timeout_s, _SMOKE_LIMIT_S))
            chosen[check.name, check.arguments] = quick
    return tuple(chosen.values())


def _scripts(transaction: OpenTransaction) -> tuple[Outcome, ...]:
    """Whether scripts start, where staging elsewhere has rewritten them."""
    if transaction.journal.staging != "relocate":
        return ()
    from envmedic.engine.stage import shebangs  # noqa: PLC0415  # few repairs are staged elsewhere

    session = transaction.session
    outcome = shebangs.check(session.prefix, transaction.directory.tree, session.store.root)
    session.emit(CheckFinished(phase="smoke", outcome=outcome))
    return (outcome,)


def worse(before: Iterable[Outcome], after: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Outcomes that fail now and did not fail before."""
    failed = {outcome.key for outcome in before if outcome.status in FAILURES}
    return tuple(outcome for outcome in after if outcome.status in FAILURES and outcome.key not in failed)
