"""From a finding to a plan: proposals, and the first of them whose wheels can be had."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from envmedic import planner
from envmedic.api.observation import stage
from envmedic.api.settings import Settings
from envmedic.diagnosis import derive
from envmedic.errors import EnvmedicError, NoSolution, NothingToRepair
from envmedic.model.checks import Check
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Finding
from envmedic.model.plan import Plan
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.ports import Installer, Resolution


@dataclass(frozen=True)
class Case:
    """One finding with the playbook that repairs it."""

    facts: Facts
    finding: Finding
    playbook: LoadedPlaybook
    command: tuple[str, ...] = ()
    """The user's failing command; empty where none was given."""
    extendable: bool = False


@dataclass(frozen=True)
class _Resolved:
    proposal: planner.Proposal
    resolution: Resolution | None
    failed: dict[str, str] = field(default_factory=dict)
    """Title → reason of the proposals whose wheels could not be had."""


def make_plan(settings: Settings, case: Case, installer: Installer) -> Plan:
    """The best proposal whose wheels can be resolved, as a plan. Raises NothingToRepair, NoSolution, NetworkError."""
    options = planner.Options(
        find_links=settings.find_links, offline=settings.offline, torch_index=settings.torch_index
    )
    considered = planner.proposals(case.facts, case.finding, case.playbook, values=derive(case.facts), options=options)
    resolved = _first_resolved(settings, case.facts.environment, considered, installer)
    plan = planner.build(
        case.facts,
        case.finding,
        case.playbook,
        resolved.proposal,
        resolved.resolution,
        installer,
        now=now(),
        considered=considered,
        failed=resolved.failed,
        fetched=_fetched(resolved.resolution),
        extendable=case.extendable,
    )
    return _with_command(plan, case.command)


def now() -> str:
    """The time in UTC, RFC 3339."""
    return dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")


def _first_resolved(
    settings: Settings, environment: Environment | None, considered: planner.Proposals, installer: Installer
) -> _Resolved:
    if environment is None or not considered.proposals:
        raise _no_way(environment, considered)
    failed: dict[str, str] = {}
    errors: list[EnvmedicError] = []
    for proposal in considered.proposals:
        if proposal.request is None:
            return _Resolved(proposal, None, failed)
        try:
            with stage(settings.stream, "resolve"):
                resolution = installer.resolve(proposal.request, environment, settings.stream.emit)
        except EnvmedicError as error:
            failed[proposal.title] = error.cause or error.summary
            errors.append(error)
            if not isinstance(error, NoSolution):
                break  # a worse way is no answer to a network that fails or a wheel that is damaged
        else:
            return _Resolved(proposal, resolution, failed)
    raise errors[0]


def _no_way(environment: Environment | None, considered: planner.Proposals) -> NoSolution:
    reasons = tuple(f"{item.title}: {item.why_not}" for item in considered.rejected)
    if environment is not None and environment.torch is None and environment.distribution("torch") is None:
        hint = "Name the environment that the program runs in; this one has no torch"
    else:
        hint = "Another Python, driver or GPU changes this: `envmedic facts` shows those that were found"
    return NoSolution(
        "There is no set of distributions that would repair this environment on this host",
        cause=reasons[0] if reasons else None,
        hint=hint,
        details=reasons,
    )


def _fetched(resolution: Resolution | None) -> frozenset[str]:
    artifacts = resolution.artifacts if resolution else ()
    return frozenset(item.local_path for item in artifacts if Path(item.local_path).is_file())


def _with_command(plan: Plan, command: tuple[str, ...]) -> Plan:
    """`plan` with the user's command as a check that must have failed before and pass afterwards."""
    if not command:
        return plan
    check = Check(name="command", role="reproduction", arguments=command)
    return planner.named(msgspec.structs.replace(plan, checks=(check, *plan.checks)))


def require_change(plan: Plan) -> Plan:
    """`plan`, unless it has nothing to do. Raises NothingToRepair."""
    if plan.steps:
        return plan
    raise NothingToRepair(
        f"Nothing to repair: playbook {plan.playbook} finds {plan.prefix} as it should be",
        hint="Give the error text with --log FILE, or see `envmedic diagnose`",
    )
