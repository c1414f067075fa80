"""The inside of a transaction: reproduce the fault in the clone, take the steps, prove it, or try further."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from envmedic import tree
from envmedic.engine import steps
from envmedic.engine.judgement import FAILURES, judge, not_reproduced, reproduced
from envmedic.engine.preflight import Capabilities
from envmedic.engine.session import OpenTransaction, Session
from envmedic.errors import ChecksFailed, InternalError, NothingToRepair, RepairDeclined
from envmedic.model.checks import Check, Judgement, Outcome
from envmedic.model.events import RoundStarted, StepFinished, StepStarted
from envmedic.model.facts import Environment
from envmedic.model.plan import Install, Plan, Step
from envmedic.model.ports import ExtendRequest, Runner
from envmedic.model.record import Round


@dataclass
class Run:
    """What a transaction has found out and made so far."""

    session: Session
    transaction: OpenTransaction
    how: Capabilities
    lock: int
    """The lock's descriptor, which commands inherit."""
    plan: Plan
    """The plan that is being carried out: the confirmed one, or the latest extension of it."""
    checks: tuple[Check, ...]
    runner: Runner
    original: tree.Fingerprint
    """Of the environment, from right before it was cloned."""
    before: tuple[Outcome, ...] = ()
    rounds: list[Round] = field(default_factory=list)


def confirm(session: Session, plan: Plan) -> None:
    """Ask for the go-ahead. Raises RepairDeclined."""
    with session.interruption.at_once():
        agreed = session.ports.confirm(plan)
    if not agreed:
        raise RepairDeclined("The repair was declined")


def fetch(session: Session, plan: Plan) -> None:
    """Every wheel is on this machine and verified before the first change."""
    artifacts = [artifact for step in plan.steps if isinstance(step, Install) for artifact in step.artifacts]
    if artifacts:
        with session.stage("fetch"), session.interruption.at_once():
            session.ports.installer.fetch(artifacts, offline=session.options.offline, emit=session.emit)


def reproduce(run: Run) -> None:
    """Run the checks in the untouched clone: a fault that neither shows there nor in the facts is not repaired."""
    if not any(check.required for check in run.checks):
        raise ChecksFailed("The plan has no check that would prove its repair", hint="Name checks in the playbook")
    with run.session.stage("reproduce"):
        run.before = run.session.checks(run.checks, run.runner, "before", run.session.emit)
    run.transaction.note(checks_before=run.before)
    run.session.point("reproduced")
    passed = not_reproduced(run.before, no_gpu=run.session.options.no_gpu)
    if not _confirmed(run.plan) and (passed or not reproduced(run.before)):
        raise NothingToRepair(
            "The fault does not reproduce in a copy of the environment, and no fact confirms it",
            cause=_by_status(run.before) or "no check could tell",
            hint="Give the failing command with --reproduce -- CMD, or the full error text with --log",
        )


def _by_status(outcomes: tuple[Outcome, ...]) -> str:
    """What the checks of the fault say, such as ``pass: torchvision-dispatch, torchvision-nms on cpu``."""
    names: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.role in {"playbook", "reproduction"}:
            where = f" on {outcome.device}" if outcome.device else ""
            names.setdefault(outcome.status, []).append(outcome.check + where)
    return "; ".join(f"{status}: {', '.join(checks)}" for status, checks in names.items())


def _confirmed(plan: Plan) -> bool:
    """Whether facts say that the fault is there."""
    return plan.finding is not None and plan.finding.confirmed is True


def repair(run: Run) -> None:
    """Steps and checks, and again with an extended plan, until all required checks pass."""
    while True:
        _take_steps(run)
        judgement = _verify(run)
        failed = _failed(judgement)
        run.rounds.append(Round(number=len(run.rounds) + 1, plan_id=run.plan.id, failed=failed))
        run.transaction.note(rounds=tuple(run.rounds))
        if judgement.passed:
            return
        extension = _extension(run)
        if extension is None:
            raise _unproven(judgement, failed)
        _continue_with(run, extension)


def _take_steps(run: Run) -> None:
    session = run.session
    place = steps.Workplace(
        tree=run.transaction.directory.tree,
        trash=run.transaction.directory.trash,
        owner=session.store.owner,
        runner=run.runner,
        installer=session.ports.installer,
        emit=session.emit,
        poll=session.interruption.poll,
        timeout_s=session.options.timeout_s,
    )
    with session.stage("steps"):
        for index, step in enumerate(run.plan.steps, 1):
            session.interruption.poll()
            commands = steps.commands(step, place)
            session.emit(
                StepStarted(index=index, total=len(run.plan.steps), description=step.describe(), commands=commands)
            )
            _take_step(run, index, step, place)
            session.point("step-taken")


def _take_step(run: Run, index: int, step: Step, place: steps.Workplace) -> None:
    started, ok, detail = time.monotonic(), False, ""
    try:
        detail = steps.carry_out(step, place)
        ok = True
    finally:
        run.session.emit(StepFinished(index=index, seconds=time.monotonic() - started, ok=ok, detail=detail))


def _verify(run: Run) -> Judgement:
    with run.session.stage("verify"):
        after = run.session.checks(run.checks, run.runner, "after", run.session.emit)
    confirmed = _confirmed(run.transaction.record.plan)
    judgement = judge(run.before, after, no_gpu=run.session.options.no_gpu, confirmed=confirmed)
    run.transaction.note(checks_after=after, regressions=judgement.regressions)
    if confirmed:
        _note_not_reproduced(run, judgement)
    _note_gpu(run, judgement)
    run.session.point("verified")
    return judgement


def _note_not_reproduced(run: Run, judgement: Judgement) -> None:
    notes = run.transaction.record.notes
    new = (f"{check}: did not fail before; the facts confirm the fault" for check in judgement.not_reproduced)
    run.transaction.note(notes=tuple(dict.fromkeys((*notes, *new))))


def _note_gpu(run: Run, judgement: Judgement) -> None:
    """What is known of the GPUs; a plan that wanted them proven is never told as needing none."""
    if run.plan.gpu_checks and judgement.gpu == "not needed":
        waived = run.session.options.no_gpu
        run.transaction.note(gpu="not verified", gpu_reason="--no-gpu" if waived else "no check ran on a GPU")
    else:
        run.transaction.note(gpu=judgement.gpu, gpu_reason=judgement.gpu_reason)


def _extension(run: Run) -> Plan | None:
    """The repair loop's next plan, confirmed; None when the loop ends here."""
    session = run.session
    extend, rounds = session.ports.extend, len(run.rounds)
    if extend is None or not run.transaction.record.plan.extendable or rounds >= session.options.max_rounds:
        return None
    failed = tuple(outcome for outcome in run.transaction.record.checks_after if outcome.status in FAILURES)
    with session.interruption.at_once():
        plan = extend(
            ExtendRequest(plan=run.plan, failed=failed, environment=lambda: _observe_clone(run), round=rounds)
        )
    if plan is not None:
        session.emit(RoundStarted(round=rounds + 1, because=", ".join(run.rounds[-1].failed)))
        confirm(session, plan)
        fetch(session, plan)
    return plan


def _observe_clone(run: Run) -> Environment:
    """The clone as it will look at the prefix."""
    observe = run.session.ports.observe
    if observe is None:
        raise InternalError("The repair loop was given no way to observe the clone")
    return observe(run.transaction.directory.tree)


def _continue_with(run: Run, extension: Plan) -> None:
    """Go on with another plan in the same clone; checks that are new are seen failing first."""
    run.plan = extension
    run.transaction.note(extensions=(*run.transaction.record.extensions, extension))
    known = {(check.name, check.arguments) for check in run.checks}
    new = tuple(check for check in extension.checks if (check.name, check.arguments) not in known)
    with run.session.stage("reproduce"):
        run.before += run.session.checks(new, run.runner, "before", run.session.emit) if new else ()
    run.checks += new
    run.transaction.note(checks_before=run.before)


def _failed(judgement: Judgement) -> tuple[str, ...]:
    """Why the exchange may not take place, worst first; empty when it may."""
    return (*judgement.failed_required, *judgement.regressions, *judgement.skipped_required)


def _unproven(judgement: Judgement, failed: tuple[str, ...]) -> ChecksFailed:
    could_not = not judgement.failed_required and not judgement.regressions
    return ChecksFailed(
        "Required checks could not run" if could_not else "The repaired copy fails its checks",
        cause=failed[0] if failed else judgement.gpu_reason or None,
        hint="See what each check said above; the kept record has the whole output",
        details=failed,
    )
