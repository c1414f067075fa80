"""Choice of the next plan in the repair loop: further faults of the clone, or another way for a failed plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from envmedic.api.context.settings import Settings
from envmedic.api.diagnosis import diagnose_lines
from envmedic.api.planning.plan_choice import PlanChoices, RepairGoal, repairable
from envmedic.diagnosis.candidates import FACTS_ALONE
from envmedic.diagnosis.vocabulary import derive
from envmedic.errors import InstallerError, NetworkError, NothingToRepair
from envmedic.model.checks import Confirmation, Outcome
from envmedic.model.events import Notice
from envmedic.model.facts import Facts
from envmedic.model.findings import Finding
from envmedic.model.plan import Plan
from envmedic.model.ports import ExtendRequest, PlanExtension
from envmedic.planner import steps_key
from envmedic.playbook.schema.conditions import confirms, refutes

_NAMING = ("module", "part", "name", "callee", "argument", "caller", "said")
"""Groups of a match that say what is lacking, refused or raised."""


class Loop:
    """Chooses the next plan of a repair. The same steps are never repeated in one state of the clone.

    The search is depth-first: `_levels` has the choices for the environment as it was found, then those for the
    clone after the first plan, and so on.
    """

    def __init__(self, settings: Settings, first: PlanChoices) -> None:
        self._settings = settings
        self._levels = [first]
        self._playbooks = first.wanted.playbooks
        self._host = first.wanted.facts.host
        self._told = set(first.skipped)
        """Findings without a plan that the user has been told about."""
        self._handled: set[str | None] = set()
        """Playbooks of all plans so far, abandoned ones included."""
        self._tried: set[str] = set()

    def __call__(self, request: ExtendRequest) -> PlanExtension | None:
        """Return the next plan, or None if nothing is left to try."""
        plans = request.plans
        # the engine may have dropped plans; the choices made in the states after them are void
        del self._levels[len(plans) :]
        self._tried.add(_path(plans))
        self._handled |= {plan.playbook for plan in plans}
        if request.error is not None:
            return self._instead(request)
        facts = Facts(host=self._host, environment=request.environment())
        # Before the checks, facts alone decide: a fault that they still confirm means that its plan did not work. After
        # failed checks, another fault is looked for first, and only then is the plan doubted.
        if not request.verified:
            lasting = self._still_confirmed(plans[-1], facts)
            if lasting:
                return self._instead(request, lasting)
            return self._further(request, facts, request.failed)
        return self._further(request, facts, request.failed) or self._instead(request)

    def _still_confirmed(self, plan: Plan, facts: Facts) -> str:
        """Return the facts that still confirm a plan's fault; empty if it is gone, or facts cannot prove it."""
        # only a required check of facts: a fault known from the text alone may have facts that never changed
        if not any(check.confirmation is not None and check.required for check in plan.checks):
            return ""
        asked = next((check.confirmation for check in plan.checks if check.confirmation is not None), None)
        found = confirms(asked, derive(facts)) if asked is not None else None
        if found is None or found.truth is not True:
            return ""
        return "; ".join(dict.fromkeys(leaf.text for leaf in found.leaves))

    def _further(self, request: ExtendRequest, facts: Facts, failed: Iterable[Outcome]) -> PlanExtension | None:
        """Return a plan for another fault of the clone, found by facts or by the output of failed checks."""
        failed = tuple(failed)
        # the outcome of `facts` is envmedic's own text, not a program's error
        text = [_said(item) for item in failed if not item.check.startswith("facts")]
        lines = [line.encode() for block in text for line in block.splitlines()]
        diagnosis = diagnose_lines(self._playbooks, facts, lines, Path(request.plans[-1].prefix))
        pointed = {fault for item in failed for fault in item.points_to}
        # what a plan was to end and did not is no further fault: it takes another way
        tried = {_subject(plan.finding) for plan in request.plans} - {None}
        every = (item for item in repairable(diagnosis, pointed) if _subject(item) not in tried)
        found = tuple(item for item in every if request.verified or item.confirmed)
        findings = (*found, *self._reported(facts, request.plans))
        wanted = RepairGoal(
            facts=facts,
            playbooks=self._playbooks,
            findings=findings,
            extendable=True,
            reported=self._levels[0].wanted.reported,
            keep_partial=self._levels[0].wanted.keep_partial,
        )
        choices = PlanChoices(self._settings, self._levels[-1].installer, wanted, earlier=request.plans)
        plan = self._untried(choices, request.plans)
        self._tell(choices)
        if plan is None:
            return None
        self._levels.append(choices)
        return PlanExtension(plan=plan, because=_summary(plan.finding), keep=len(request.plans))

    def _reported(self, facts: Facts, plans: Iterable[Plan]) -> Iterator[Finding]:
        """Yield the findings of the user's text without a plan so far, unless facts of the clone refute them.

        Another reading of a message that one of `plans` is about is no further fault: it comes where that plan fails;
        except one that facts refuted before and confirm now: a library that was nowhere may not be seen where it came.
        """
        derived = derive(facts)
        first = self._levels[0].wanted
        read = frozenset(line for plan in plans if plan.finding is not None for line in _lines(plan.finding))
        left = (
            item
            for item in first.findings
            if item.confirmed is None and item.playbook not in self._handled and _lines(item).isdisjoint(read)
        )
        asked = ((item, Confirmation.of(first.playbook(item).playbook, item.groups)) for item in left)
        yield from (item for item, when in asked if when is None or not refutes(when, derived))
        for item in first.refuted:
            asks = Confirmation.of(first.playbook(item).playbook, item.groups)
            if item.playbook not in self._handled and asks is not None and confirms(asks, derived).truth is True:
                yield msgspec.structs.replace(item, confirmed=True, confidence=FACTS_ALONE)

    def _instead(self, request: ExtendRequest, lasting: str = "") -> PlanExtension | None:
        """Return another way for the last plan, else for the one before it."""
        # never below `good`: those plans proved themselves, and another way for them would lose a proven repair
        for keep in range(len(request.plans) - 1, request.good - 1, -1):
            given_up = request.plans[keep]
            absent = isinstance(request.error, NothingToRepair) and keep == len(request.plans) - 1
            plan = self._untried(self._levels[keep], request.plans[:keep], another_fault=absent)
            if plan is not None:
                del self._levels[keep + 1 :]
                why = "the facts confirm it still: " + lasting if lasting else "its repair did not prove itself"
                why = request.error.summary if request.error is not None else why
                return PlanExtension(plan=plan, because=f"{_summary(given_up.finding)}: {why}", keep=keep)
            # the fault is the last plan's own: another way for an earlier plan would not remove it
            if lasting:
                return None
        self._tell(self._levels[0])
        return None

    def _untried(self, choices: PlanChoices, plans: tuple[Plan, ...], *, another_fault: bool = False) -> Plan | None:
        # different findings can lead to the same steps, which must not run again in the same state
        while True:
            plan = self._next(choices, another_fault=another_fault)
            if plan is None or _path((*plans, plan)) not in self._tried:
                return plan

    def _next(self, choices: PlanChoices, *, another_fault: bool) -> Plan | None:
        """Return the next plan of `choices`; None if its wheels cannot be fetched now."""
        # raised, the error would end the transaction, and with it the repairs that are already in the clone
        try:
            return choices.next(another_fault=another_fault)
        except (NetworkError, InstallerError) as error:
            message = f"No further plan could be made: {error.summary}"
            self._settings.stream.emit(Notice(code="no-plan", message=message, level="warning"))
            return None

    def _tell(self, choices: PlanChoices) -> None:
        """Report the faults of the clone without a plan."""
        for summary, why in choices.skipped.items():
            if summary in self._told:
                continue
            self._told.add(summary)
            self._settings.stream.emit(Notice(code="not-repaired", message=f"Not repaired: {summary}: {why}"))


def _subject(finding: Finding | None) -> tuple[str, ...] | None:
    """What a finding says is lacking or refused, None where it names nothing: two texts on it are of one fault."""
    groups = finding.groups if finding is not None else {}
    named = tuple(f"{key} {groups[key]}" for key in _NAMING if key in groups)
    return (finding.playbook or "", *named) if finding is not None and len(named) > 1 else None


def _said(outcome: Outcome) -> str:
    """What a failed check printed; the error comes once, and after the frames of its traceback, which tell who asked."""
    return outcome.detail if outcome.reason in outcome.detail else f"{outcome.detail}\n{outcome.reason}"


def _lines(finding: Finding) -> frozenset[str]:
    """The lines of the text that a finding reads."""
    return frozenset(item.where for item in finding.evidence if item.kind == "text")


def _path(plans: Iterable[Plan]) -> str:
    """Return the steps that lead to a state of the clone, as a key."""
    return "\n".join(steps_key(plan.steps) for plan in plans)


def _summary(finding: Finding | None) -> str:
    return finding.summary if finding is not None else ""
