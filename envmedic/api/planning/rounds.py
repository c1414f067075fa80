"""The repair loop's choice of plans: what the clone still lacks, and other ways for what failed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from envmedic.api.context.settings import Settings
from envmedic.api.diagnosis import diagnose_lines
from envmedic.api.planning.plan_choice import PlanChoices, RepairGoal, repairable
from envmedic.diagnosis.vocabulary import derive
from envmedic.errors import InstallerError, NetworkError, NothingToRepair
from envmedic.model.base import to_json
from envmedic.model.checks import Confirmation, Outcome
from envmedic.model.events import Notice
from envmedic.model.facts import Facts
from envmedic.model.findings import Finding
from envmedic.model.plan import Plan
from envmedic.model.ports import ExtendRequest, PlanExtension
from envmedic.playbook.schema.conditions import confirms


class Loop:
    """Names the next plan of a repair. The same steps are never taken twice in one clone state.

    It searches in depth: `_levels` holds the choices for the environment as it was found, then those for the
    clone after the first plan, and so on.
    """

    def __init__(self, settings: Settings, first: PlanChoices) -> None:
        self._settings = settings
        self._levels = [first]
        self._playbooks = first.wanted.playbooks
        self._host = first.wanted.facts.host
        self._told = set(first.skipped)
        """Findings without a plan of which the user knows."""
        self._handled: set[str | None] = set()
        """Playbooks that plans were about, of those given up too."""
        self._tried: set[str] = set()

    def __call__(self, request: ExtendRequest) -> PlanExtension | None:
        """The next plan, or None when nothing is left to try."""
        plans = request.plans
        del self._levels[len(plans) :]
        self._tried.add(_path(plans))
        self._handled |= {plan.playbook for plan in plans}
        if request.error is not None:
            return self._instead(request)
        facts = Facts(host=self._host, environment=request.environment())
        if not request.verified:
            lasting = self._still_confirmed(plans[-1], facts)
            if lasting:
                return self._instead(request, lasting)
            return self._further(request, facts, request.failed)
        return self._further(request, facts, request.failed) or self._instead(request)

    def _still_confirmed(self, plan: Plan, facts: Facts) -> str:
        """What facts say where a plan's own fault is there still; empty where it is gone, or facts prove nothing."""
        if not any(check.confirmation is not None and check.required for check in plan.checks):
            return ""
        asked = next((check.confirmation for check in plan.checks if check.confirmation is not None), None)
        found = confirms(asked, derive(facts)) if asked is not None else None
        if found is None or found.truth is not True:
            return ""
        return "; ".join(dict.fromkeys(leaf.text for leaf in found.leaves))

    def _further(self, request: ExtendRequest, facts: Facts, failed: Iterable[Outcome]) -> PlanExtension | None:
        """A plan for what else is wrong in the clone: by facts, and by what checks say."""
        failed = tuple(failed)
        text = [f"{item.reason}\n{item.detail}" for item in failed if not item.check.startswith("facts")]
        lines = [line.encode() for block in text for line in block.splitlines()]
        diagnosis = diagnose_lines(self._playbooks, facts, lines, Path(request.plans[-1].prefix))
        pointed = {fault for item in failed for fault in item.points_to}
        found = tuple(item for item in repairable(diagnosis, pointed) if request.verified or item.confirmed)
        findings = (*found, *self._reported(facts))
        wanted = RepairGoal(facts=facts, playbooks=self._playbooks, findings=findings, extendable=True)
        choices = PlanChoices(self._settings, self._levels[-1].installer, wanted, earlier=request.plans)
        plan = self._untried(choices, request.plans)
        self._tell(choices)
        if plan is None:
            return None
        self._levels.append(choices)
        return PlanExtension(plan=plan, because=_summary(plan.finding), keep=len(request.plans))

    def _reported(self, facts: Facts) -> tuple[Finding, ...]:
        """What the text alone speaks of and no plan was about yet, unless the facts of the clone refute it."""
        derived = derive(facts)
        first = self._levels[0].wanted
        left = (item for item in first.findings if item.confirmed is None and item.playbook not in self._handled)
        asked = ((item, Confirmation.of(first.playbook(item).playbook, item.groups)) for item in left)
        return tuple(item for item, when in asked if when is None or confirms(when, derived).truth is not False)

    def _instead(self, request: ExtendRequest, lasting: str = "") -> PlanExtension | None:
        """Another way for the last plan, else for the one before it."""
        for keep in range(len(request.plans) - 1, request.good - 1, -1):
            given_up = request.plans[keep]
            absent = isinstance(request.error, NothingToRepair) and keep == len(request.plans) - 1
            plan = self._untried(self._levels[keep], request.plans[:keep], another_fault=absent)
            if plan is not None:
                del self._levels[keep + 1 :]
                why = "the facts confirm it still: " + lasting if lasting else "its repair did not prove itself"
                why = request.error.summary if request.error is not None else why
                return PlanExtension(plan=plan, because=f"{_summary(given_up.finding)}: {why}", keep=keep)
            if lasting:
                return None
        return None

    def _untried(self, choices: PlanChoices, plans: tuple[Plan, ...], *, another_fault: bool = False) -> Plan | None:
        while True:
            plan = self._next(choices, another_fault=another_fault)
            if plan is None or _path((*plans, plan)) not in self._tried:
                return plan

    def _next(self, choices: PlanChoices, *, another_fault: bool) -> Plan | None:
        """The next plan; where its wheels cannot be had just now, none: what was repaired so far must not suffer."""
        try:
            return choices.next(another_fault=another_fault)
        except (NetworkError, InstallerError) as error:
            message = f"No further plan could be made: {error.summary}"
            self._settings.stream.emit(Notice(code="no-plan", message=message, level="warning"))
            return None

    def _tell(self, choices: PlanChoices) -> None:
        """Say what is wrong in the clone and has no plan."""
        for summary, why in choices.skipped.items():
            if summary in self._told:
                continue
            self._told.add(summary)
            self._settings.stream.emit(Notice(code="not-repaired", message=f"Not repaired: {summary}: {why}"))


def _path(plans: Iterable[Plan]) -> str:
    """The steps that lead to a state of the clone, as text: steps hold mappings, which no set takes."""
    return to_json([plan.steps for plan in plans], indent=0)


def _summary(finding: Finding | None) -> str:
    return finding.summary if finding is not None else ""
