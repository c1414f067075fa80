"""Order of plans: repairable findings, best first, and for each finding its ways, best first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from envmedic import planner
from envmedic.api.context.settings import Settings
from envmedic.api.planning.project_edits import with_edit
from envmedic.api.planning.proposals import PlanningCase, plans
from envmedic.errors import EnvmedicError, HostFault, NoSolution, NothingToRepair
from envmedic.model.checks import Check, Confirmation
from envmedic.model.conda import CondaChange
from envmedic.model.facts import Facts
from envmedic.model.findings import Diagnosis, Finding, of_host
from envmedic.model.plan import Advise, Change, FileRepair, Install, Plan, Purge, Rebuild, SetEnv, Step, UnsetEnv
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.ports import Installer
from envmedic.model.program import Program
from envmedic.model.registries.faults import FAULT_CLASSES
from envmedic.planner.checks import FACTS

CERTAIN_ENOUGH = 0.5
"""Findings below this confidence are reported and not repaired."""
POINTED_AT = 0.25
"""The same limit for findings that a failed check points to as well."""
_NO_PLAN = (NoSolution, NothingToRepair, HostFault)


@dataclass(frozen=True)
class RepairGoal:
    """The goal of a repair: findings of one diagnosis, best first."""

    facts: Facts
    playbooks: tuple[LoadedPlaybook, ...]
    findings: tuple[Finding, ...]
    command: tuple[str, ...] = ()
    """The user's failing command; empty where none was given."""
    program: Program | None = None
    """How that command failed and decides; None where only its exit status does."""
    extendable: bool = False
    way: str | None = None
    """Title of the way to take first for the best finding; None takes the best."""
    importing: str | None = None
    """Module whose import the text shows failing; None where it shows none."""
    reported: Finding | None = None
    """The best finding of the user's text; None without a text."""
    keep_partial: bool = False
    """Whether another fault that facts show is repaired although that may not end what was reported."""
    refuted: tuple[Finding, ...] = ()
    """Findings of the text that facts refute as long as others are not repaired."""

    def playbook(self, finding: Finding) -> LoadedPlaybook:
        """Return the playbook that repairs `finding`."""
        return next(item for item in self.playbooks if item.playbook.id == finding.playbook)


def repairable(diagnosis: Diagnosis, pointed: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return the findings that are certain enough, not refuted by facts and not latent, best first.

    `pointed` are the classes of fault that failed checks point to: their findings come first, and need less confidence.
    """
    found = [
        item
        for item in diagnosis.every
        if item.playbook is not None
        and item.confirmed is not False
        and not item.latent
        and item.confidence >= (POINTED_AT if item.fault in pointed else CERTAIN_ENOUGH)
    ]
    # a stable sort keeps the order of the diagnosis within both groups
    return tuple(sorted(found, key=lambda item: item.fault not in pointed))


class PlanChoices:
    """The plans for one state of an environment, each made on request, since a plan may take a resolution."""

    def __init__(
        self, settings: Settings, installer: Installer, wanted: RepairGoal, *, earlier: tuple[Plan, ...] = ()
    ) -> None:
        """Plan for `wanted`; the effects of `earlier` plans must not be undone."""
        self.installer = installer
        self.wanted = wanted
        self.skipped: dict[str, str] = {}
        """Findings without a plan: summary → reason."""
        self.errors: list[EnvmedicError] = []
        """The reasons of findings without a plan, best finding first."""
        self._settings = settings
        self._earlier = earlier
        self._leave = False
        self._plans = self._each()

    def next(self, *, another_fault: bool = False) -> Plan | None:
        """Return the next best plan, with `another_fault` of the next finding; None without one.

        Raises errors that prevent every plan, such as NetworkError.
        """
        self._leave = another_fault
        return next(self._plans, None)

    def _each(self) -> Iterator[Plan]:
        for number, finding in enumerate(self.wanted.findings):
            case = PlanningCase(
                self.wanted.facts,
                finding,
                self.wanted.playbook(finding),
                self.wanted.command,
                extendable=self.wanted.extendable,
                way=None if number else self.wanted.way,
                importing=self.wanted.importing,
                program=self.wanted.program,
            )
            try:
                for plan in plans(self._settings, case, self.installer):
                    noted = self._noted(plan)
                    refusal, beside = _refusal(plan, self._earlier), self._beside(noted, finding)
                    if refusal is None and beside is None:
                        # the changes of the plans before it are in the clone, and the project is to agree with all
                        yield with_edit(self._settings, self.wanted.facts.environment, noted, self._earlier)
                        # set by `next` while this generator was suspended: the fault does not exist in the clone
                        if self._leave:
                            break
                    elif refusal is not None:
                        self._skip(finding, refusal, advice_of(plan))
                    elif beside is not None:
                        self._skip(finding, beside, f"{beside.cause}. {beside.hint}")
            except _NO_PLAN as error:
                self._skip(finding, error)

    def _skip(self, finding: Finding, error: EnvmedicError, advice: str = "") -> None:
        self.errors.append(error)
        reason = error.details[0] if error.details else error.cause or error.summary
        self.skipped[finding.summary] = advice or reason

    def _noted(self, plan: Plan) -> Plan:
        """Return `plan` with notes on the better findings that have no plan, and with the proof that the report asks for.

        Where it is about another finding than the reported one, facts that confirm that one tell its end too; where
        none does, it stays unanswered.
        """
        notes = tuple(f"Not repaired: {summary}: {why}" for summary, why in self.skipped.items())
        asked, every = self.wanted.reported, (*self._earlier, plan)
        own = asked is None or any(item.playbook == asked.playbook for item in every)
        end = self._end_of(asked) if asked is not None and not own else None
        # A class that can bring the reported one about need not have done so here: facts that show its end decide
        if asked is None or own or (end is None and any(_is_about(item, asked) for item in every)):
            return planner.named(msgspec.structs.replace(plan, notes=(*plan.notes, *notes))) if notes else plan
        return planner.named(
            msgspec.structs.replace(
                plan,
                notes=(*plan.notes, *notes),
                checks=(end, *plan.checks) if end is not None else plan.checks,
                unanswered=(asked.summary,) if end is None else (),
            )
        )

    def _beside(self, plan: Plan, finding: Finding) -> EnvmedicError | None:
        """Return why a fault that facts alone show is not repaired in the place of the reported one: none would end it."""
        wanted = self.wanted
        shows = bool(wanted.command) or wanted.program is not None or wanted.importing is not None
        if not plan.unanswered or finding.signature is not None or shows or wanted.keep_partial:
            return None
        return NothingToRepair(
            f"{finding.summary} is not what was reported",
            cause="The facts show it besides, and nothing could tell whether its repair ends what the text says, "
            + plan.unanswered[0],
            hint=f"Repair it by itself with --playbook {finding.playbook}, or with --keep-partial",
        )

    def _end_of(self, finding: Finding) -> Check | None:
        """The check that facts no longer confirm a finding; None where they do not, or do not prove its end."""
        playbook = self.wanted.playbook(finding).playbook
        asked = Confirmation.of(playbook, finding.groups)
        if asked is None or not finding.confirmed or FACTS not in playbook.checks:
            return None
        return Check(name="facts", role="reproduction", arguments=(asked.playbook,), confirmation=asked)


def _is_about(plan: Plan, finding: Finding) -> bool:
    """Whether a plan is for the class of a finding, or for one that brings it about."""
    # what packages want of each other and of a program names one of them, which a class does not
    if plan.fault is None or finding.fault == "companion-version":
        return False
    # what leaves every package as it is ends a fault inside one only where a check shows that
    of_packages = not all(isinstance(step, FileRepair) for step in plan.steps)
    return plan.fault == finding.fault or (of_packages and finding.fault in FAULT_CLASSES[plan.fault].symptoms)


def _refusal(plan: Plan, earlier: Sequence[Plan]) -> EnvmedicError | None:
    """Return why `plan` is not carried out: no steps, advice only, or a conflict with `earlier` plans."""
    if not plan.steps:
        return NothingToRepair(
            f"Nothing to repair: playbook {plan.playbook} finds {plan.prefix} as it should be",
            hint="Give the error text with --log FILE, or see `envmedic diagnose`",
        )
    if advice_of(plan):
        return _advice(plan)
    # two playbooks that revert each other would keep the repair loop running for ever
    undone = undoes(plan, earlier)
    repeated = bool(earlier) and not undone and _repeats(plan, earlier)
    if not undone and not repeated:
        return None
    return NothingToRepair(
        f"{plan.finding.summary if plan.finding else plan.playbook} cannot be repaired too",
        cause=f"it would undo what was repaired before: {undone}" if undone else "its steps were taken already",
        hint="Repair one of them, and see what the other still needs",
    )


def advice_of(plan: Plan) -> str:
    """Return the instructions of a plan that has only advice; empty for a plan that changes something."""
    texts = [step.text for step in plan.steps if isinstance(step, Advise)]
    return "\n".join(texts) if len(texts) == len(plan.steps) else ""


def _advice(plan: Plan) -> EnvmedicError:
    """Return the error for a plan that has only advice."""
    text = advice_of(plan)
    summary = plan.finding.summary if plan.finding is not None else ""
    if of_host(plan.fault, plan.finding.fix_kind if plan.finding is not None else None):
        return host_fault(summary, text)
    cause = "No change of the environment by envmedic mends this"
    return NothingToRepair(summary, cause=cause, hint=text)


def host_fault(summary: str, advice: str) -> HostFault:
    """Return the error for a fault of the host."""
    return HostFault(
        f"A fault of the host: {summary}",
        cause="The driver or the hardware is at fault, so no repair of an environment can help",
        hint=advice,
    )


def _repeats(plan: Plan, earlier: Sequence[Plan]) -> bool:
    """Whether `earlier` plans already did everything that `plan` does."""
    changed = {_outcome(change) for item in earlier for change in item.changes}
    steps = [step for item in earlier for step in item.steps]
    done = {planner.steps_key((step,)) for step in steps}
    left = {path for step in steps if isinstance(step, Purge) for path in step.leftovers}
    built = [_build(step) for step in steps if isinstance(step, Rebuild)]
    # installs are compared by their changes: two resolutions of one version may have different artifacts
    return all(_outcome(change) in changed for change in plan.changes) and all(
        left.issuperset(step.leftovers)
        if isinstance(step, Purge)
        else _build(step) in built
        if isinstance(step, Rebuild)
        else isinstance(step, Install | CondaChange) or planner.steps_key((step,)) in done
        for step in plan.steps
    )


def _build(step: Rebuild) -> tuple[object, ...]:
    """Return what a build is made of: the copy that it replaces is another one each time."""
    return step.distribution.name, step.source, tuple(sorted(step.variables.items()))


def undoes(plan: Plan, earlier: Sequence[Plan]) -> str:
    """Describe what `plan` would change again after the `earlier` plans; empty if nothing."""
    versions = {name: _outcome(change)[1:] for item in earlier for change in item.changes for name in _names(change)}
    for change in plan.changes:
        for name in _names(change):
            if name in versions and versions[name] != _outcome(change)[1:]:
                return f"{name} {versions[name][0] or 'was removed'}"
    values = {name: value for item in earlier for step in item.steps for name, value in _variables(step).items()}
    again = ((name, value) for step in plan.steps for name, value in _variables(step).items())
    return next((f"the variable {name}" for name, value in again if name in values and values[name] != value), "")


def _outcome(change: Change) -> tuple[str, str | None, str]:
    """Return the state after a change: name, version, and the build of a conda package."""
    return change.name, change.after, change.after_build


def _names(change: Change) -> tuple[str, ...]:
    """Return the names that a change concerns."""
    # conda's `pytorch` and the distribution `torch` are different names; a wheel may replace a conda package
    if change.by == "conda":
        return (f"conda's {change.name}",)
    return (change.name, f"conda's {change.package}") if change.package else (change.name,)


def _variables(step: Step) -> dict[str, str | None]:
    if isinstance(step, SetEnv):
        return dict(step.variables)
    return dict.fromkeys(step.names) if isinstance(step, UnsetEnv) else {}
