"""The stages of one plan in the clone: reproduce the fault, take the steps, verify.

`rounds` repeats them for further plans.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import msgspec

from envmedic.engine.clone.directory_entries import changed_files
from envmedic.engine.stage import relocate
from envmedic.engine.store.context import OpenTransaction, TransactionContext
from envmedic.engine.store.workspace import required
from envmedic.engine.transaction import compiling, shared_files, steps
from envmedic.engine.transaction.preflight import Capabilities
from envmedic.engine.verify.verdict import FAILURES, PROOF, judge, not_reproduced, reproduced, unasked, warnings
from envmedic.errors import ChecksFailed, EnvmedicError, NothingToRepair, PreflightError, RepairDeclined
from envmedic.forked import begun
from envmedic.model.checks import Check, Judgement, Outcome, name_of
from envmedic.model.conda import CondaChange
from envmedic.model.events import EventData, Notice, StepFinished, StepStarted, distinct
from envmedic.model.plan import Advise, Install, Pin, Plan, Purge, Rebuild, RunInstaller, Step
from envmedic.model.ports import Runner
from envmedic.model.program import ProgramEnd
from envmedic.model.record import Left, Round
from envmedic.model.registries.check_kinds import CONSUMER_CHECKS
from envmedic.tree import fingerprint

FACTS = "facts"
"""The check that compares facts after the steps with those before: only what they refuted then counts."""
_OPENED_BY_NAME = re.compile(r"lib(cu|nv|nccl)\w*\.so[.0-9]*")
"""NVIDIA's libraries."""
_COUNT = re.compile(r" \(\d+ lines like it\)$")
_ERROR = re.compile(r"\w+(?:Error|Exception): \S.{9,}")
"""The last line of a traceback with a message that tells failures apart."""


@dataclass(eq=False)
class RepairPart:
    """One plan in the clone, with the outcomes of its checks before its steps."""

    plan: Plan
    checks: tuple[Check, ...] = ()
    """The checks of the plan that no earlier part has."""
    before: tuple[Outcome, ...] = ()
    """Their outcomes."""
    unseen: EnvmedicError | None = None
    """Why the steps are not taken: neither checks nor facts show the fault."""
    taken: bool = False
    """Whether its steps were begun."""
    seen: bool = False
    """Whether a check failed by its fault in the state of the clone that its steps begin with."""


@dataclass
class Run:
    """The state of one transaction while its stages run."""

    session: TransactionContext
    transaction: OpenTransaction
    how: Capabilities
    lock: int
    """The lock's descriptor, which commands inherit."""
    plan: Plan
    """The plan that was confirmed."""
    runner: Runner
    original: fingerprint.Fingerprint
    """Fingerprint of the environment right before it was cloned."""
    make_clone: Callable[[Run], None]
    """Clones the environment again after `discard_tree`."""
    runner_of_original: Callable[[Run], Runner]
    """A runner for another clone of the environment, made at the first call: it stays as the environment is."""
    parts: list[RepairPart] = field(default_factory=list)
    """The plans that the clone holds, and the one that comes next."""
    rounds: list[Round] = field(default_factory=list)

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every check of every part."""
        return tuple(check for part in self.parts for check in part.checks)

    @property
    def before(self) -> tuple[Outcome, ...]:
        """Their outcomes before the steps of their part."""
        return tuple(outcome for part in self.parts for outcome in part.before)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the parts."""
        return tuple(part.plan for part in self.parts)

    @property
    def extendable(self) -> bool:
        """Whether the repair loop may go on with other plans."""
        return self.session.ports.extend is not None and self.plan.extendable

    def note_parts(self) -> None:
        """Put into the record which plans the clone holds."""
        first, *others = self.plans
        self.transaction.note(plan=first, extensions=tuple(others), checks_before=self.before)


def confirm(session: TransactionContext, plan: Plan) -> None:
    """Ask for the go-ahead. Raises RepairDeclined."""
    with session.interruption.at_once():
        agreed = session.ports.confirm(plan)
    if not agreed:
        raise RepairDeclined("The repair was declined")


def fetch(session: TransactionContext, plan: Plan) -> None:
    """Fetch and verify every wheel and conda package before the first change, also that of the clone."""
    artifacts = [artifact for step in plan.steps if isinstance(step, Install) for artifact in step.artifacts]
    changes = [step for step in plan.steps if isinstance(step, CondaChange) and step.install]
    if not artifacts and not changes:
        return

    news = distinct(session.emit)

    def emit(data: EventData) -> None:
        news(data)
        session.interruption.poll()  # a signal breaks into a download; a token is asked whenever it is told of one

    with session.stage("fetch"), session.interruption.at_once():
        for change in changes:
            required(session.ports.conda).fetch(change, offline=session.options.offline, emit=emit)
        if artifacts:
            session.ports.installer().fetch(artifacts, offline=session.options.offline, emit=emit)


def reproduce(run: Run) -> None:
    """Run the checks of the plan in the untouched clone: the live environment does not even get a ``.pyc`` from them.

    Raises ChecksFailed for a plan without a check that would prove its repair.
    """
    add_part(run, run.plan)


def add_part(run: Run, plan: Plan, *, seen: bool = False) -> None:
    """Make `plan` the next one in the clone, and run its new checks before its steps.

    `RepairPart.unseen` says why a fault is not repaired: no check reproduces it (unless it was `seen` in the round
    before) and no fact confirms it. Raises ChecksFailed for a plan without a check that would prove its repair.
    """
    if not any(check.required for check in plan.checks):
        raise ChecksFailed("The plan has no check that would prove its repair", hint="Name checks in the playbook")
    part = RepairPart(plan, _new(run.checks, plan.checks), seen=seen)
    run.parts.append(part)
    with run.session.stage("reproduce"):
        if seen or _confirmed(plan):
            part.before = _before(run, [check for check in part.checks if _asked_first(run, check)])
        else:
            _reproduce_part(run, part)
    run.note_parts()
    run.session.point("reproduced")


def _asked_first(run: Run, check: Check) -> bool:
    """Whether a check runs before the steps: it can show the fault, or the outcome after them depends on it.

    Others are asked of another clone, for what fails after the steps (`_ask_original`). Where a clone costs the whole
    environment again, all run.
    """
    return check.role in PROOF or check.name == FACTS or run.how.clone == "copy"


def _before(run: Run, checks: Sequence[Check]) -> tuple[Outcome, ...]:
    return run.session.checks(tuple(checks), run.runner, "before", run.session.emit) if checks else ()


def _reproduce_part(run: Run, part: RepairPart) -> None:
    """Run the checks that can show the fault, imports only where no proof shows a reported one."""
    reported = part.plan.finding is not None and any(item.kind == "text" for item in part.plan.finding.evidence)
    proofs = [check for check in part.checks if check.role in PROOF]
    others = [check for check in part.checks if check.role not in PROOF]
    part.before = _before(run, proofs)
    # Checks can disagree: one passes while another reproduces the fault. Only a confirmed finding overrides a pass.
    passed = not_reproduced(part.before, no_gpu=run.session.options.no_gpu)
    if reported and not passed and not reproduced(part.before):
        imports = [check for check in others if check.name == "import"]
        others = [check for check in others if check.name != "import"]
        part.before += _before(run, imports)
        _promote(part)
    if passed or not reproduced(part.before):
        part.unseen = NothingToRepair(
            "The fault does not reproduce in a copy of the environment, and no fact confirms it",
            cause=_by_status(part.before) or "no check could tell",
            hint="Give the failing command with --reproduce -- CMD, or the full error text with --log",
        )
    else:
        part.before += _before(run, [check for check in others if _asked_first(run, check)])


def _promote(part: RepairPart) -> None:
    """Let each import that fails with the reported error decide, whoever asked for it."""
    names = {item.check.partition(" ")[2] for item in part.before if _shows(item, part.plan)}
    if not names:
        return
    part.before = tuple(
        msgspec.structs.replace(item, role="reproduction")
        if item.check.startswith("import ") and item.check.partition(" ")[2] in names
        else item
        for item in part.before
    )
    deciding = Check(name="import", role="reproduction", arguments=tuple(sorted(names)))
    rest = (
        msgspec.structs.replace(check, arguments=tuple(name for name in check.arguments if name not in names))
        if check.name == "import"
        else check
        for check in part.checks
    )
    part.checks = (deciding, *(check for check in rest if check.name != "import" or check.arguments))


def _shows(outcome: Outcome, plan: Plan) -> bool:
    """Whether a failed import ended with the error of the text that the plan is about."""
    if outcome.status not in FAILURES or not outcome.check.startswith("import ") or plan.finding is None:
        return False
    reported = [_COUNT.sub("", item.what).strip() for item in plan.finding.evidence if item.kind == "text"]
    # the name of an exception alone is shared by too many failures
    own = outcome.reason if _ERROR.fullmatch(outcome.reason) else None
    said = f"{outcome.reason}\n{outcome.detail}"
    return any((text and text in said) or (own is not None and own in text) for text in reported)


def _new(known: Sequence[Check], checks: Iterable[Check]) -> tuple[Check, ...]:
    """The members of `checks` that are not `known`. Of an import check only the names that no known one imports stay.

    A known check counts only if it proves at least as much: an informative one does not stand in for a proof.
    """
    found = []
    for check in checks:
        like = [item for item in known if item.name == check.name and (item.role in PROOF or check.role not in PROOF)]
        if check.name == "import":
            names = {name for item in like for name in item.arguments}
            left = tuple(name for name in check.arguments if name not in names)
            if left:
                found.append(msgspec.structs.replace(check, arguments=left))
        elif all(item.arguments != check.arguments for item in like):
            found.append(check)
    return tuple(found)


def _by_status(outcomes: tuple[Outcome, ...]) -> str:
    """The proofs by status, such as ``pass: torchvision-dispatch, torchvision-nms on cpu``."""
    names: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.role in PROOF:
            where = f" on {outcome.device}" if outcome.device else ""
            names.setdefault(outcome.status, []).append(outcome.check + where)
    return "; ".join(f"{status}: {', '.join(checks)}" for status, checks in names.items())


def _confirmed(plan: Plan) -> bool:
    """Whether facts confirm the fault, or the plan is about none (moving torch to another release)."""
    return plan.finding is None or plan.finding.confirmed is True


def take_steps(run: Run, part: RepairPart) -> None:
    """Take the steps of a plan in the clone. Raises InstallerError, InputError, PreflightError, OSError."""
    session, plan = run.session, part.plan
    part.taken = True  # before the first step: a clone in which a step failed halfway is no longer intact
    place = steps.Workplace(
        tree=run.transaction.directory.tree,
        trash=run.transaction.directory.trash,
        runner=run.runner,
        installer=session.ports.installer(),
        emit=session.emit,
        poll=session.interruption.poll,
        timeout_s=session.options.timeout_s,
        conda=session.ports.conda,
        command=session.ports.command,
    )
    with session.stage("steps"):
        for index, step in enumerate(plan.steps, 1):
            session.interruption.poll()
            commands = steps.commands(step, place)
            session.emit(
                StepStarted(index=index, total=len(plan.steps), description=step.describe(), commands=commands)
            )
            _take_step(run, index, step, place)
            compiling.compile_as_before(step, place, session.prefix)
            session.point("step-taken")
        _name_the_link(run)


def _name_the_link(run: Run) -> None:
    """Let files of the clone name the link that the environment is, where a program has written the tree behind it.

    Commands see the clone in the place of that tree. Raises PreflightError, OSError.
    """
    prefix, live = run.session.prefix, run.session.store.live
    if live == prefix:
        return
    _, left = relocate.rewrite_former(run.transaction.directory.tree, live, prefix, {})
    if left:
        raise PreflightError(
            f"Files of the repaired copy would name {live}, which is another tree after it",
            cause=f"{len(left)} of them hold it in a form that cannot be rewritten safely: {', '.join(left[:5])}",
            hint=f"Let them name {prefix}, then run the same command again",
            details=tuple(left),
        )


def _take_step(run: Run, index: int, step: Step, place: steps.Workplace) -> None:
    started, ok, detail = time.monotonic(), False, ""
    try:
        detail = steps.carry_out(step, place)
        ok = True
    except EnvmedicError as error:
        seen = _by_status(run.before)
        where = f"in step {index}: {step.describe()}"
        error.details = (where, *((f"before the steps: {seen}",) if seen else ()), *error.details)
        raise
    finally:
        run.session.emit(StepFinished(index=index, seconds=time.monotonic() - started, ok=ok, detail=detail))


def verify(run: Run, *, proofs_only: bool = False) -> Judgement:
    """Run the checks of every part again and judge the outcomes; `proofs_only` takes only the checks of the faults."""
    chosen = tuple(check for check in run.checks if not proofs_only or check.role in PROOF)
    with run.session.stage("verify"):
        chosen = _narrowed(run, chosen)
        # beside the checks, none of which changes the clone
        with begun(partial(shared_files.lost, run.transaction.directory.tree, run.original)) as taken:
            after = _deciding(run, run.session.checks(chosen, run.runner, "after", run.session.emit))
            lost = taken.value()
        _ask_original(run, after)
    before = tuple(outcome for outcome in run.before if not proofs_only or outcome.role in PROOF)
    confirmed = _confirmed(run.parts[0].plan)
    judgement = judge(before, after, no_gpu=run.session.options.no_gpu, confirmed=confirmed, lost=lost)
    run.transaction.note(checks_after=after, regressions=judgement.regressions, program=_program(after))
    if confirmed:
        _note_not_reproduced(run, judgement)
    _note_gpu(run, judgement)
    add_notes(run, warnings(after))
    run.session.point("verified")
    return judgement


def _deciding(run: Run, after: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """`after`, where an import that ends with the reported error still decides, whoever asked for it."""
    return tuple(
        msgspec.structs.replace(item, role="reproduction") if any(_shows(item, plan) for plan in run.plans) else item
        for item in after
    )


def _narrowed(run: Run, checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """`checks` without the imports, and those of libraries besides torch, that nothing of what changed can affect."""
    find = run.session.ports.unaffected
    steps_taken = [step for plan in run.plans for step in plan.steps]
    known = all(isinstance(step, Purge | Install | Rebuild | Pin | RunInstaller | Advise) for step in steps_taken)
    if find is None or not known or run.session.options.profile == "full" or not any(map(_may_narrow, checks)):
        return checks
    clone = run.transaction.directory.tree
    changed = changed_files(run.original, fingerprint.fingerprint(clone, twin=run.original), run.how.clone)
    moved = {change.name for plan in run.plans for change in plan.changes} | moved_by_command(run)
    if run.plan.purpose == "install":
        installed = {item.name for item in run.transaction.record.before}
        spared = find(run.session.prefix, clone, changed, moved, near=not moved & installed)
    else:
        spared = find(run.session.prefix, clone, changed, moved)
    asked = {outcome.check for outcome in run.before}  # what was asked before is compared
    # what opens a library by its name is seen in no file
    by_name = any(_OPENED_BY_NAME.fullmatch(name.rpartition("/")[2]) for name in changed)
    spared_libraries = spared & (CONSUMER_CHECKS - set(map(name_of, asked))) if not by_name else frozenset()
    found, left, libraries = [], 0, []
    for check in checks:
        names = check.arguments
        if check.name in spared_libraries and check.role not in PROOF:
            libraries.append(check.name)
            continue
        if _may_narrow(check):
            names = tuple(name for name in names if name.partition(".")[0] not in spared or f"import {name}" in asked)
        left += len(check.arguments) - len(names)
        if names or not check.arguments:
            found.append(msgspec.structs.replace(check, arguments=names))
    if left or libraries:
        what = " and ".join([*([f"{left} imports"] if left else []), *(f"the check of {name}" for name in libraries)])
        told = f"{what} are left out: nothing that they load has changed (--profile full runs them)"
        run.session.emit(Notice(code="imports-left-out", message=told))
    return tuple(found)


def moved_by_command(run: Run, *, gone: bool = False) -> set[str]:
    """The distributions that the user's own command has changed, or removed (`gone`), since no plan knows them all."""
    if run.plan.purpose != "install":
        return set()
    sides = (run.transaction.record.before, run.session.ports.distributions(run.transaction.directory.tree))
    one, other = ({(item.name, item.version) for item in side} for side in sides)
    moved = {name for name, _ in one ^ other}
    return moved - {name for name, _ in other} if gone else moved


def _may_narrow(check: Check) -> bool:
    return check.name == "import" and check.role not in PROOF and not check.in_place


def _ask_original(run: Run, after: Sequence[Outcome]) -> None:
    """Run what does not pass now, and was not asked before the steps, in the environment as it was."""
    for part in run.parts:
        asked = unasked(part.checks, run.before, after, no_gpu=run.session.options.no_gpu)
        if asked:
            run.session.emit(Notice(code="asked-before", message=f"Did they pass before? {_told(asked)}"))
            part.before += run.session.checks(asked, run.runner_of_original(run), "before", run.session.emit)
    run.note_parts()


def _told(checks: Iterable[Check]) -> str:
    return ", ".join(f"import {' '.join(item.arguments)}" if item.name == "import" else item.name for item in checks)


def _program(after: Sequence[Outcome]) -> ProgramEnd | Literal["not run"]:
    """How the user's program ended; one that could not be started has not run."""
    return next((outcome.program for outcome in after if outcome.program is not None), "not run")


def _note_not_reproduced(run: Run, judgement: Judgement) -> None:
    new = (f"{check}: did not fail before; the facts confirm the fault" for check in judgement.not_reproduced)
    add_notes(run, new)


def leave(run: Run, *faults: Left) -> None:
    """Put faults that stay into the record, each once, reported ones first."""
    found = sorted((*run.transaction.record.left, *faults), key=lambda item: not item.reported)
    once = {item.summary: item for item in reversed(found)}
    run.transaction.note(left=tuple(reversed(once.values())))


def add_notes(run: Run, texts: Iterable[str]) -> None:
    """Add notes for the user to the record, each once."""
    run.transaction.note(notes=tuple(dict.fromkeys((*run.transaction.record.notes, *texts))))


def _note_gpu(run: Run, judgement: Judgement) -> None:
    """Note whether GPUs were proven. A plan with GPU checks never ends as "not needed"."""
    if any(plan.gpu_checks for plan in run.plans) and judgement.gpu == "not needed":
        waived = run.session.options.no_gpu
        run.transaction.note(gpu="not verified", gpu_reason="--no-gpu" if waived else "no check ran on a GPU")
    else:
        run.transaction.note(gpu=judgement.gpu, gpu_reason=judgement.gpu_reason)


def reasons(judgement: Judgement) -> tuple[str, ...]:
    """The reasons against the exchange, worst first; empty when it may take place."""
    return (*judgement.failed_required, *judgement.regressions, *judgement.skipped_required)


def unproven(judgement: Judgement, tried: Sequence[str] = ()) -> ChecksFailed:
    """The error for a repair that its checks do not prove; `tried` has a line for each round."""
    could_not, failed = not judgement.failed_required and not judgement.regressions, reasons(judgement)
    return ChecksFailed(
        "Required checks could not run" if could_not else "The repaired copy fails its checks",
        cause=failed[0] if failed else judgement.gpu_reason or None,
        hint="See what each check said above; the kept record has the whole output",
        details=(*failed, *tried),
    )
