"""From a finding to plans: the ranked proposals whose wheels can be had."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from envmedic import planner
from envmedic.api.context.observation import stage
from envmedic.api.context.settings import Settings
from envmedic.api.context.wiring import conda_of
from envmedic.diagnosis.vocabulary import derive
from envmedic.errors import EnvmedicError, InputError, NetworkError, NoSolution, NothingToRepair
from envmedic.model.checks import Check
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Finding
from envmedic.model.plan import CONDA_PINS, CONSTRAINTS, Plan
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.ports import CondaInstaller, Installer, Resolution
from envmedic.planner.constraints import keeping
from envmedic.planner.family_move import UNCHANGED

PASSED_OVER = "another way was asked for"
"""Why a way was not chosen that ranks above the one that was."""


@dataclass(frozen=True)
class PlanningCase:
    """One finding with the playbook that repairs it, or (without one) the torch family that is to be moved on."""

    facts: Facts
    finding: Finding | None
    playbook: LoadedPlaybook
    command: tuple[str, ...] = ()
    """The user's failing command; empty where none was given."""
    extendable: bool = False
    way: str | None = None
    """Title of the way to take first; None takes the best."""


def plans(settings: Settings, case: PlanningCase, installer: Installer) -> Iterator[Plan]:
    """The plans that carry the playbook out, best first: the next is made when the one before it is of no use.

    Raises NoSolution where there is none at all, InputError for a way that there is not, NetworkError and InstallerError.
    """
    options = planner.Options(
        find_links=settings.find_links, offline=settings.offline, torch_index=settings.torch_index
    )
    environment = case.facts.environment
    considered = planner.proposals(case.facts, case.finding, case.playbook, values=derive(case.facts), options=options)
    if environment is None or not considered.proposals:
        raise _no_way(environment, considered) if case.finding is not None else _no_move(considered)
    if case.way is not None:
        considered = _led_by(considered, case.way)
    failed: dict[str, str] = {}
    errors: list[NoSolution | NetworkError] = []
    for proposal in considered.proposals:
        made = _tried(settings, case, proposal, installer, considered, failed, first=not errors)
        if isinstance(made, NoSolution | NetworkError):
            if case.way == proposal.title:
                raise made  # who asked for it is not given another one
            failed[proposal.title] = made.cause or made.summary
            errors.append(made)
        else:
            yield _with_command(_keeping(settings, made, environment), case.command)
            failed[proposal.title] = "it was tried in a clone, and did not prove itself"
    if len(errors) == len(considered.proposals):
        raise _none(errors)


def _led_by(considered: planner.Proposals, title: str) -> planner.Proposals:
    """`considered` with the way of that title first. Raises InputError, with the titles that there are."""
    titles = [item.title for item in considered.proposals]
    if title not in titles:
        raise InputError(
            f"There is no way called {title!r} to repair this here", hint="Name one of these", details=tuple(titles)
        )
    place = titles.index(title)
    better = (msgspec.structs.replace(item, cost=PASSED_OVER) for item in considered.proposals[:place])
    ordered = (considered.proposals[place], *better, *considered.proposals[place + 1 :])
    return msgspec.structs.replace(considered, proposals=ordered)


def _tried(  # noqa: PLR0917  # what a plan is made from
    settings: Settings,
    case: PlanningCase,
    proposal: planner.Proposal,
    installer: Installer,
    considered: planner.Proposals,
    failed: Mapping[str, str],
    *,
    first: bool,
) -> Plan | NoSolution | NetworkError:
    """The plan of a proposal, or why there is none. The network is no reason to leave the best way for a worse one."""
    try:
        return _made(settings, case, proposal, installer, considered, failed)
    except NetworkError as error:
        if first:
            raise
        return error


def _none(errors: Sequence[NoSolution | NetworkError]) -> NoSolution | NetworkError:
    """The error where no way works: the network's where one might have, else the best way's with what each lacks."""
    unreachable = next((error for error in errors if isinstance(error, NetworkError)), None)
    if unreachable is not None or len(errors) == 1:
        return unreachable or errors[0]
    first = errors[0]
    told = tuple(dict.fromkeys(error.cause or error.summary for error in errors[1:]))
    return NoSolution(first.summary, cause=first.cause, hint=first.hint, details=(*first.details, *told))


def _made(  # noqa: PLR0917  # what a plan is made from
    settings: Settings,
    case: PlanningCase,
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
            planner.ResolvedProposal(proposal, resolution, _fetched(resolution, conda), considered, failed),
            planner.PlanInstallers(installer, conda),
            now=now(),
            extendable=case.extendable,
        )
    except NoSolution as error:
        return error


def _resolution(
    settings: Settings, proposal: planner.Proposal, case: PlanningCase, installer: Installer
) -> Resolution | None:
    """The wheels, and then the conda packages, with what the wheels ask of these."""
    environment = case.facts.environment
    if environment is None or (proposal.request is None and proposal.conda is None):
        return None
    found = Resolution(artifacts=())
    if proposal.request is not None:
        with stage(settings.stream, "resolve"):
            found = _wheels(settings, proposal, environment, installer)
    wheels, request = planner.divided(
        proposal, found.artifacts, environment, planner.markers(environment, case.facts.host)
    )
    if request is None:
        return msgspec.structs.replace(found, artifacts=wheels)
    with stage(settings.stream, "solve"):
        change = _conda(settings, case).resolve(
            request, _without_own_pins(environment), case.facts.host, settings.stream.emit
        )
    return msgspec.structs.replace(found, artifacts=wheels, conda=change)


def _wheels(
    settings: Settings, proposal: planner.Proposal, environment: Environment, installer: Installer
) -> Resolution:
    """The wheels beside conda's packages as they are, else those that need conda's packages in other versions."""
    if proposal.request is None:
        return Resolution(artifacts=())
    try:
        return installer.resolve(proposal.request, environment, settings.stream.emit)
    except NoSolution as error:
        request = planner.loosened(proposal, environment)
        if request is None:
            raise
        try:
            return installer.resolve(request, environment, settings.stream.emit)
        except NoSolution:
            raise error from None  # what it lacks beside conda's packages tells more


def _conda(settings: Settings, case: PlanningCase) -> CondaInstaller:
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


def _no_move(considered: planner.Proposals) -> EnvmedicError:
    """What keeps the torch family from being moved on: that it is there already, or what cannot follow."""
    reasons = tuple(f"{item.title}: {item.why_not}" for item in considered.rejected)
    if any(item.why_not == UNCHANGED for item in considered.rejected):
        return NothingToRepair(
            "There is nothing to move: the torch family is where this policy leads",
            cause="; ".join(text for text in reasons if not text.endswith(UNCHANGED)) or None,
            hint="Take another policy: `envmedic plan --help` lists them",
            details=reasons,
        )
    return NoSolution(
        "The torch family cannot be moved on in this environment on this host",
        cause=reasons[0] if reasons else None,
        hint="Replace or remove what cannot follow, or take another policy: `envmedic plan --help` lists them",
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


def _keeping(settings: Settings, made: Plan, environment: Environment) -> Plan:
    """`made` with constraints that keep it: all where asked for, else those that would hold what it changes."""
    path = Path(environment.real_prefix) / CONSTRAINTS
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    names = {canonicalize_name(found[0]) for line in lines if (found := re.match(r"[A-Za-z0-9][\w.-]*", line))}
    return keeping(made, environment, everything=settings.pin, constrained=names)


def _without_own_pins(environment: Environment) -> Environment:
    """`environment` without the pins of conda packages that an earlier repair wrote to keep itself."""
    path = Path(environment.real_prefix) / CONDA_PINS
    if environment.conda is None or not path.is_file():
        return environment
    own = set(path.read_text(encoding="utf-8").splitlines())
    left = tuple(spec for spec in environment.conda.pinned if spec not in own)
    return msgspec.structs.replace(environment, conda=msgspec.structs.replace(environment.conda, pinned=left))


def _with_command(plan: Plan, command: tuple[str, ...]) -> Plan:
    """`plan` with the user's command as a check that must have failed before and pass afterwards."""
    if not command:
        return plan
    check = Check(name="command", role="reproduction", arguments=command)
    return planner.named(msgspec.structs.replace(plan, checks=(check, *plan.checks)))
