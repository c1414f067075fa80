"""From a finding to plans: the ranked proposals whose wheels can be had."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from envmedic import planner
from envmedic.api.joints import conda_of
from envmedic.api.observation import stage
from envmedic.api.settings import Settings
from envmedic.diagnosis import derive
from envmedic.errors import NoSolution
from envmedic.model.checks import Check
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Finding
from envmedic.model.plan import Plan
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.ports import CondaInstaller, Installer, Resolution


@dataclass(frozen=True)
class Case:
    """One finding with the playbook that repairs it."""

    facts: Facts
    finding: Finding
    playbook: LoadedPlaybook
    command: tuple[str, ...] = ()
    """The user's failing command; empty where none was given."""
    extendable: bool = False


def plans(settings: Settings, case: Case, installer: Installer) -> Iterator[Plan]:
    """The plans that carry the playbook out, best first: the next is made when the one before it is of no use.

    Raises NoSolution where there is none at all, NetworkError and InstallerError.
    """
    options = planner.Options(
        find_links=settings.find_links, offline=settings.offline, torch_index=settings.torch_index
    )
    environment = case.facts.environment
    considered = planner.proposals(case.facts, case.finding, case.playbook, values=derive(case.facts), options=options)
    if environment is None or not considered.proposals:
        raise _no_way(environment, considered)
    failed: dict[str, str] = {}
    errors: list[NoSolution] = []
    for proposal in considered.proposals:
        made = _made(settings, case, proposal, installer, considered, failed)
        if isinstance(made, NoSolution):
            failed[proposal.title] = made.cause or made.summary
            errors.append(made)
        else:
            yield _with_command(made, case.command)
            failed[proposal.title] = "it was tried in a clone, and did not prove itself"
    if len(errors) == len(considered.proposals):
        raise errors[0]


def _made(  # noqa: PLR0917  # what a plan is made from
    settings: Settings,
    case: Case,
    proposal: planner.Proposal,
    installer: Installer,
    considered: planner.Proposals,
    failed: Mapping[str, str],
) -> Plan | NoSolution:
    """The plan of a proposal, or why there is none. Other errors are raised: a worse way does not mend the network."""
    try:
        resolution = _resolution(settings, proposal, case, installer)
        conda = _conda(settings, case) if resolution is not None and resolution.conda is not None else None
        return planner.build(
            case.facts,
            case.finding,
            case.playbook,
            proposal,
            resolution,
            installer,
            now=now(),
            conda=conda,
            considered=considered,
            failed=failed,
            fetched=_fetched(resolution, conda),
            extendable=case.extendable,
        )
    except NoSolution as error:
        return error


def _resolution(settings: Settings, proposal: planner.Proposal, case: Case, installer: Installer) -> Resolution | None:
    """The wheels, and then the conda packages, with what the wheels ask of these."""
    environment = case.facts.environment
    if environment is None or (proposal.request is None and proposal.conda is None):
        return None
    found = Resolution(artifacts=())
    if proposal.request is not None:
        with stage(settings.stream, "resolve"):
            found = installer.resolve(proposal.request, environment, settings.stream.emit)
    wheels, request = planner.divided(
        proposal, found.artifacts, environment, planner.markers(environment, case.facts.host)
    )
    if request is None:
        return msgspec.structs.replace(found, artifacts=wheels)
    with stage(settings.stream, "solve"):
        change = _conda(settings, case).resolve(request, environment, case.facts.host, settings.stream.emit)
    return msgspec.structs.replace(found, artifacts=wheels, conda=change)


def _conda(settings: Settings, case: Case) -> CondaInstaller:
    environment = case.facts.environment
    if environment is None:
        raise AssertionError
    return conda_of(settings, Path(environment.real_prefix))


def now() -> str:
    """The time in UTC, RFC 3339."""
    return dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")


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


def _fetched(resolution: Resolution | None, conda: CondaInstaller | None) -> frozenset[str]:
    """Local paths of the wheels, and URLs of the conda packages, that are on this machine already."""
    if resolution is None:
        return frozenset()
    found = {item.local_path for item in resolution.artifacts if Path(item.local_path).is_file()}
    if conda is not None and resolution.conda is not None:
        found |= {item.url for item in resolution.conda.install if conda.is_fetched(item)}
    return frozenset(found)


def _with_command(plan: Plan, command: tuple[str, ...]) -> Plan:
    """`plan` with the user's command as a check that must have failed before and pass afterwards."""
    if not command:
        return plan
    check = Check(name="command", role="reproduction", arguments=command)
    return planner.named(msgspec.structs.replace(plan, checks=(check, *plan.checks)))
