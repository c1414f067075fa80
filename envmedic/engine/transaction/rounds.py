"""The repair loop: one plan after the other in the clone, until the clone is proven or no plan is left.

A round takes the steps of one plan. The port `extend` gives the next plan: for a further fault, on top of the same
clone; or instead of a plan that failed, in a fresh clone after the plans before it. A further fault that cannot be
repaired does not undo the repairs before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envmedic.engine.transaction.repair_stages import (
    RepairPart,
    Run,
    add_part,
    confirm,
    fetch,
    leave,
    reasons,
    take_steps,
    unproven,
    verify,
)
from envmedic.engine.verify.verdict import blocking, otherwise, reproduction_ended
from envmedic.errors import (
    EnvmedicError,
    InputError,
    InstallerError,
    IntegrityError,
    InternalError,
    NetworkError,
    PartialRepair,
    PreflightError,
    RepairDeclined,
)
from envmedic.model.checks import Judgement, Outcome
from envmedic.model.events import RoundStarted
from envmedic.model.facts import Environment
from envmedic.model.plan import Plan
from envmedic.model.ports import ExtendRequest, PlanExtension
from envmedic.model.record import Left, Round

_OF_STEPS = (InstallerError, PreflightError, InputError)
"""Errors of one plan's steps that another plan may avoid. Others, such as a full disk, end the transaction."""


_SILENT = "no check of it failed before and passes now, and no fact tells that it is gone"


@dataclass
class _Result:
    """The result of a round."""

    judgement: Judgement | None = None
    """The verdict on the checks; None if they did not run."""
    error: EnvmedicError | None = None
    """The error that ended the steps or prevented them."""
    further: PlanExtension | None = None
    """The next plan for a fault that facts show after the steps."""

    @property
    def good(self) -> bool:
        """Whether the checks ran and passed."""
        return self.judgement is not None and self.judgement.passed

    @property
    def failed(self) -> tuple[str, ...]:
        """Why the clone is not proven; empty when it is."""
        if self.error is not None:
            return (self.error.summary,)
        if self.judgement is not None:
            return reasons(self.judgement) if not self.judgement.passed else ()
        return (self.further.because,) if self.further is not None else ()

    def as_error(self, run: Run) -> EnvmedicError:
        """The error that ends the transaction."""
        if self.error is not None:
            return self.error
        return unproven(self.judgement, tried(run)) if self.judgement is not None else InternalError("Nothing failed")


def repair(run: Run) -> None:
    """Carry plans out until the clone is proven. Raises ChecksFailed, or what ended the steps."""
    good: tuple[RepairPart, ...] = ()  # the longest sequence of plans whose checks all passed
    progress: tuple[RepairPart, ...] = ()  # likewise of plans that end a part of what was reported
    because = ""
    while True:
        result = _round(run, because, good)
        if result.good:
            good = tuple(run.parts)
            # A required check passed, yet an import may still fail with another error: a fault hid behind the first.
            result.further = result.further or _ask_about_lasting(run, good)
            if result.further is None:
                _note_what_is_left(run)
                _answer(run)
                return
        elif result.judgement is not None and result.judgement.partial:
            progress = tuple(run.parts)
        extension = result.further or _ask(run, result, good)
        if extension is None or not _go_on(run, extension, result, proven=bool(good)):
            _fall_back(run, good, progress, result)
            _answer(run)
            return
        because = extension.because


def _round(run: Run, because: str, good: Sequence[RepairPart]) -> _Result:
    """Take the steps of the last plan and judge them."""
    part = run.parts[-1]
    result = _try_steps(run, part)
    if result.error is None:
        _judge(run, result, good)
    done = Round(
        number=len(run.rounds) + 1,
        plan_id=part.plan.id,
        failed=result.failed,
        because=because,
        summary=_fault(part.plan),
    )
    run.rounds.append(done)
    run.transaction.note(rounds=tuple(run.rounds))
    return result


def _try_steps(run: Run, part: RepairPart) -> _Result:
    if part.unseen is not None:
        return _Result(error=part.unseen)
    try:
        take_steps(run, part)
    except _OF_STEPS as error:
        if not run.extendable:  # the user named the playbook or the plan: the error itself is the answer
            raise
        return _Result(error=error)
    return _Result()


def _judge(run: Run, result: _Result, good: Sequence[RepairPart]) -> None:
    """Ask the facts first: they take seconds, all checks take minutes.

    When facts show a further fault, only the proofs of the plans so far run before its repair.
    """
    result.further = _ask(run, result, good)
    if result.further is None:
        result.judgement = verify(run)
    elif result.further.keep == len(run.parts):
        result.judgement = verify(run, proofs_only=True)
        if not result.judgement.passed:
            result.further, result.judgement = None, verify(run)


def _ask(run: Run, result: _Result, good: Sequence[RepairPart]) -> PlanExtension | None:
    """The next plan, if the loop may go on."""
    verified = result.judgement is not None or result.error is not None
    # A round that was not verified may still need one more to prove it, so it counts as used up one earlier.
    if len(run.rounds) + (not verified) >= run.session.options.max_rounds:
        return None
    return _next(run, result, good, verified=verified)


def _ask_about_lasting(run: Run, good: Sequence[RepairPart]) -> PlanExtension | None:
    """The next plan when imports still fail with another error: a fault behind the repaired one."""
    lasting = otherwise(run.before, run.transaction.record.checks_after)
    if not lasting or len(run.rounds) >= run.session.options.max_rounds:
        return None
    return _next(run, _Result(), good, verified=False, failed=lasting)


def _next(
    run: Run, result: _Result, good: Sequence[RepairPart], *, verified: bool, failed: tuple[Outcome, ...] = ()
) -> PlanExtension | None:
    extend = run.session.ports.extend
    if extend is None or not run.extendable:
        return None
    outcomes = run.transaction.record.checks_after if result.judgement is not None else ()
    request = ExtendRequest(
        plans=run.plans,
        environment=lambda: _observe_clone(run),
        round=len(run.rounds),
        verified=verified,
        failed=failed or blocking(run.before, outcomes),
        error=result.error,
        good=_standing(run, good),
    )
    with run.session.interruption.at_once():
        return extend(request)


def _standing(run: Run, good: Sequence[RepairPart]) -> int:
    """The number of leading parts of the clone that are also the leading ones of `good`."""
    pairs = zip(run.parts, good)  # noqa: B905  # either may be longer
    return next(
        (number for number, (one, other) in enumerate(pairs) if one is not other), min(len(run.parts), len(good))
    )


def _note_what_is_left(run: Run) -> None:
    """Note a further fault that facts show when the rounds are used up."""
    rounds = run.session.options.max_rounds
    left = _next(run, _Result(), run.parts, verified=False) if len(run.rounds) >= rounds else None
    if left is not None and left.keep == len(run.parts):
        leave(run, Left(summary=left.because, why=f"--max-rounds is {rounds}", reported=False))


def _observe_clone(run: Run) -> Environment:
    """The facts of the clone, as if it were at the prefix."""
    observe = run.session.ports.observe
    if observe is None:
        raise InternalError("The repair loop was given no way to observe the clone")
    return observe(run.transaction.directory.tree)


def _go_on(run: Run, extension: PlanExtension, result: _Result, *, proven: bool) -> bool:
    """Prepare the clone for another plan; returns False to keep what is `proven` without it."""
    run.session.emit(RoundStarted(round=len(run.rounds) + 1, because=extension.because))
    try:
        confirm(run.session, extension.plan)
        fetch(run.session, extension.plan)
    except (RepairDeclined, NetworkError, IntegrityError) as error:
        if not proven:
            raise
        leave(run, Left(summary=_fault(extension.plan), why=error.summary, reported=False))
        return False
    if extension.keep == len(run.parts):
        seen = bool(result.failed)
    else:
        # the clone comes back to the state in which the plan that is replaced began
        seen = run.parts[extension.keep].seen
        _start_again(run, run.parts[: extension.keep])
    add_part(run, extension.plan, seen=seen)
    return True


def _start_again(run: Run, parts: Sequence[RepairPart]) -> None:
    """Return the clone to the state after `parts`, by a fresh clone if steps of other parts were taken."""
    dropped = [part for part in run.parts if part not in parts]
    intact = run.parts[: len(parts)] == list(parts) and not any(part.taken for part in dropped)
    given_up = (part.plan for part in dropped if part.taken)
    run.transaction.note(abandoned=(*run.transaction.record.abandoned, *given_up))
    run.parts[:] = parts
    if not intact:
        run.transaction.discard_tree()
        if run.how.clone == "copy":  # two full copies may not fit; other clones share their files, and go at the end
            run.transaction.empty_trash()
        run.make_clone(run)
        for part in parts:
            take_steps(run, part)
    if run.parts:
        run.note_parts()


def _fall_back(run: Run, good: tuple[RepairPart, ...], progress: tuple[RepairPart, ...], result: _Result) -> None:
    """End with the longest proven sequence of plans, else with the longest that ends a part of what was reported.

    Raises the error of the round without either.
    """
    if result.good:
        if verify(run).passed:
            return
        good = good[:-1]
    elif tuple(run.parts) == good:
        good = good[:-1]
    lost = [part.plan for part in run.parts if part not in good]
    # Dropping a part means a fresh clone, so each shorter sequence is verified again: its proof was another tree.
    error = result.as_error(run) if result.failed else None
    while good:
        _start_again(run, good)
        judgement = verify(run)
        if judgement.passed:
            why = "; ".join(result.failed) or "its repair could not be proven"
            leave(run, *(Left(summary=_fault(plan), why=why, reported=False) for plan in lost))
            return
        good, error = good[:-1], error or unproven(judgement, tried(run))
    if progress:
        reached = result.judgement
        if tuple(run.parts) != progress:
            _start_again(run, progress)
            reached = verify(run)
        if reached is not None and reached.partial:
            leave(run, *map(_lasting, reached.lasting))
            return
    raise error or InternalError("Nothing is proven and nothing failed")


def _lasting(told: str) -> Left:
    check, _, why = told.partition(": ")
    return Left(summary=check, why=why, reported=True)


def _unanswered(run: Run) -> tuple[Left, ...]:
    """The reported faults that no plan in the clone is about, where no failure that came with the report has ended."""
    record = run.transaction.record
    if reproduction_ended(record.checks_before, record.checks_after):
        return ()
    asked = dict.fromkeys(text for plan in run.plans for text in plan.unanswered)
    tried = {item.summary: item.failed[0] for item in run.rounds if item.failed}
    answered = {_fault(plan) for plan in run.plans}
    return tuple(
        Left(summary=text, why=tried.get(text, _SILENT), reported=True) for text in asked if text not in answered
    )


def _answer(run: Run) -> None:
    """Compare the clone with what was reported. Raises PartialRepair for a rest that the user does not accept."""
    leave(run, *_unanswered(run))
    left = tuple(item for item in run.transaction.record.left if item.reported)
    run.transaction.note(outcome="partial" if left else "repaired")
    if not left or run.session.options.keep_partial:
        return
    ask = run.session.ports.accept_partial
    with run.session.interruption.at_once():
        agreed = ask is not None and ask(left)
    if not agreed:
        raise PartialRepair(
            f"Only a part is repaired: {left[0].summary}",
            cause=left[0].why,
            hint="Give the text of what fails now with --log, or take what is repaired with --keep-partial",
            details=tuple(f"Not repaired: {item.summary}: {item.why}" for item in left),
        )


def _fault(plan: Plan) -> str:
    return plan.finding.summary if plan.finding is not None else plan.id


def tried(run: Run) -> tuple[str, ...]:
    """A line for each round, where there were several."""
    if len(run.rounds) == 1:
        return ()
    return tuple(f"round {item.number}: {item.summary}: {'; '.join(item.failed) or 'repaired'}" for item in run.rounds)
