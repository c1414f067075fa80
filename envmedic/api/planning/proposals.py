"""Plans for a finding, from the planner's ranked proposals and resolutions of their wheels and conda packages."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from envmedic import planner
from envmedic.api.context.observation import stage
from envmedic.api.context.other_machine import note, platform_of
from envmedic.api.context.settings import Settings
from envmedic.api.context.wiring import conda_of
from envmedic.api.planning.pin_limits import PinLimits
from envmedic.diagnosis.vocabulary import derive
from envmedic.errors import EnvmedicError, InputError, NetworkError, NoSolution, NothingToRepair, PinnedVersions
from envmedic.model.checks import Check
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Finding
from envmedic.model.pins import UserPin
from envmedic.model.plan import CONDA_PINS, CONSTRAINTS, Plan
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.ports import CondaInstaller, Installer, Resolution, ResolveRequest
from envmedic.model.program import Program
from envmedic.planner.asked import together
from envmedic.planner.constraints import keeping
from envmedic.planner.family_move import UNCHANGED
from envmedic.planner.moves.comparison import ResolvedMoves, compare
from envmedic.planner.moves.conflict_graph import Conflicts
from envmedic.planner.moves.hitting_sets import MoveSet

PASSED_OVER = "another way was asked for"
"""The reason against a way that ranks above the chosen one."""


@dataclass(frozen=True)
class PlanningCase:
    """One finding with its playbook, or (without a finding) a torch family to move."""

    facts: Facts
    finding: Finding | None
    playbook: LoadedPlaybook
    command: tuple[str, ...] = ()
    """The user's failing command; empty where none was given."""
    extendable: bool = False
    way: str | None = None
    """Title of the way to take first; None takes the best."""
    importing: str | None = None
    """Module whose import the text shows failing; None where it shows none."""
    program: Program | None = None
    """How the command failed and decides; None where only its exit status does."""


def plans(settings: Settings, case: PlanningCase, installer: Installer) -> Iterator[Plan]:
    """Yield the plans that carry the playbook out, best first; each is made on request.

    Raises NoSolution without any plan, InputError for an unknown way, NetworkError and InstallerError.
    """
    limits: PinLimits | None = PinLimits(_pins(case.facts))
    while limits is not None:
        begun = False
        try:
            for made in _plans(settings, case, installer, limits):
                begun = True
                yield made
        except NoSolution as error:
            limits = None if begun else limits.after(error, lifts=settings.lifts_pins)
            if limits is None:
                raise
        else:
            return


def _plans(settings: Settings, case: PlanningCase, installer: Installer, limits: PinLimits) -> Iterator[Plan]:
    environment = case.facts.environment
    options = planner.Options(
        find_links=settings.find_links,
        offline=settings.offline,
        torch_index=settings.torch_index,
        pins=limits.held,
        lifts_pins=bool(limits.lifted),
    )
    consider = partial(
        planner.proposals,
        case.facts,
        case.finding,
        case.playbook,
        values=derive(case.facts),
        options=options,
        importing=case.importing,
    )
    considered = consider()
    if environment is None or not considered.proposals:
        raise _pinned(limits, considered) or (
            _no_way(case.facts, considered) if case.finding is not None else _no_move(considered)
        )
    if considered.conflicts is not None:
        maker = _PlanMaker(settings, case, environment, installer, planner.Proposals(proposals=()), limits)
        for made in _least_moves(maker, considered.conflicts, consider):
            yield _with_reproductions(_keeping(settings, made, environment), case, environment)
        return
    if case.way is not None:
        considered = _led_by(considered, case.way)
    maker = _PlanMaker(settings, case, environment, installer, considered, limits)
    errors: list[NoSolution | NetworkError] = []
    for proposal in considered.proposals:
        try:
            made = maker.make(proposal)
        except (NoSolution, NetworkError) as error:
            # A user who named this way is not given another one. An unreachable network is no reason to leave the best
            # way for a worse one; after another failure it is, since nothing better is left.
            if case.way == proposal.title or (isinstance(error, NetworkError) and not errors):
                raise
            maker.failed[proposal.title] = error.cause or error.summary
            errors.append(error)
            continue
        yield _with_reproductions(_keeping(settings, made, environment), case, environment)
        maker.failed[proposal.title] = "it was tried in a clone, and did not prove itself"
    if len(errors) == len(considered.proposals):
        raise _none(errors)


def _least_moves(maker: _PlanMaker, conflicts: Conflicts, consider: Callable[..., planner.Proposals]) -> Iterator[Plan]:
    """Yield the plans that end `conflicts`, those that move the least first. Raises NoSolution and InputError."""
    made: dict[MoveSet, Plan] = {}
    errors: list[NoSolution | NetworkError] = []

    def resolves(moves: MoveSet) -> ResolvedMoves:
        held: tuple[str, ...] = ()
        for proposal in consider(moves=moves).proposals:
            try:
                made[moves] = maker.make(proposal)
            except (NoSolution, NetworkError) as error:
                # an unreachable network is no reason to leave the way that moves least for a worse one
                if isinstance(error, NetworkError) and not errors:
                    raise
                maker.failed[moves.title] = error.cause or error.summary
                errors.append(error)
                held = (*held, *(error.held if isinstance(error, NoSolution) else ()))
                continue
            return ResolvedMoves(made[moves].changes)
        return ResolvedMoves(None, held)

    compared = compare(conflicts, resolves)
    if not compared.ways:
        raise _none(errors) if errors else _no_way(maker.case.facts, consider())
    ways = list(compared.ways)
    asked = maker.case.way
    if asked is not None:
        titles = tuple(item.moves.title for item in ways)
        if asked not in titles:
            raise InputError(
                f"There is no way called {asked!r} to repair this here", hint="Name one of these", details=titles
            )
        ways.sort(key=lambda item: item.moves.title != asked)
    for way in ways:
        yield planner.named(compared.explained(made[way.moves], way, maker.failed))
        maker.failed[way.moves.title] = "it was tried in a clone, and did not prove itself"


def _led_by(considered: planner.Proposals, title: str) -> planner.Proposals:
    """Return `considered` with the way of that title first. Raises InputError with the known titles."""
    titles = [item.title for item in considered.proposals]
    if title not in titles:
        raise InputError(
            f"There is no way called {title!r} to repair this here", hint="Name one of these", details=tuple(titles)
        )
    place = titles.index(title)
    better = (msgspec.structs.replace(item, cost=PASSED_OVER) for item in considered.proposals[:place])
    ordered = (considered.proposals[place], *better, *considered.proposals[place + 1 :])
    return msgspec.structs.replace(considered, proposals=ordered)


def _none(errors: Sequence[NoSolution | NetworkError]) -> NoSolution | NetworkError:
    """Return the error if no way works: the best way's, with the causes of the others."""
    first = errors[0]
    told = tuple(dict.fromkeys(error.cause or error.summary for error in errors[1:]))
    pinned = [error for error in errors if isinstance(error, PinnedVersions)]
    if pinned:
        # before an unreachable index: to change the pin, or to let it go, is a way that is known
        pins = tuple(dict.fromkeys(pin for error in pinned for pin in error.pins))
        best = pinned[0]
        return PinnedVersions(best.summary, cause=best.cause, pins=pins, details=(*first.details, *told))
    # with an unreachable index nobody knows whether a way exists, so "no solution" would be wrong
    unreachable = next((error for error in errors if isinstance(error, NetworkError)), None)
    if unreachable is not None or len(errors) == 1:
        return unreachable or errors[0]
    return NoSolution(first.summary, cause=first.cause, hint=first.hint, details=(*first.details, *told))


@dataclass(frozen=True)
class _PlanMaker:
    """Makes the plans of one case; `failed` has the reasons against proposals so far, by title."""

    settings: Settings
    case: PlanningCase
    environment: Environment
    installer: Installer
    considered: planner.Proposals
    limits: PinLimits
    failed: dict[str, str] = field(default_factory=dict)

    @cached_property
    def conda(self) -> CondaInstaller:
        """The installer of conda packages for the environment."""
        return conda_of(self.settings, Path(self.environment.real_prefix))

    def make(self, proposal: planner.Proposal) -> Plan:
        """Return the plan of a proposal. Raises NoSolution, NetworkError and InstallerError."""
        resolution = self._resolution(proposal)
        conda = self.conda if resolution is not None and resolution.conda is not None else None
        return planner.build(
            self.case.facts,
            self.case.finding,
            self.case.playbook,
            planner.ResolvedProposal(
                proposal,
                resolution,
                _fetched(resolution, conda),
                self.considered,
                self.failed,
                self.limits.held,
                self.limits.lifted,
                self.limits.unkept(resolution.conda if resolution is not None else None),
            ),
            planner.PlanInstallers(self.installer, conda),
            now=now(),
            extendable=self.case.extendable,
        )

    def _resolution(self, proposal: planner.Proposal) -> Resolution | None:
        if proposal.request is None and proposal.conda is None:
            return None
        environment, emit = self.environment, self.settings.stream.emit
        found = Resolution(artifacts=())
        # wheels first: only resolved wheels tell which versions of conda's packages they require
        if proposal.request is not None:
            with stage(self.settings.stream, "resolve"):
                found = self._wheels(proposal, proposal.request)
            if platform_of(self.case.facts.host) is not None:
                found = msgspec.structs.replace(found, notes=(*found.notes, note(self.case.facts.host)))
        markers = planner.markers(environment, self.case.facts.host)
        wheels, request = planner.divided(proposal, found.artifacts, environment, markers)
        if request is None:
            return msgspec.structs.replace(found, artifacts=wheels)
        request = msgspec.structs.replace(request, lifted=tuple(pin for _, pin in self.limits.condas))
        with stage(self.settings.stream, "solve"):
            change = self.conda.resolve(request, _without_own_pins(environment), self.case.facts.host, emit)
        return msgspec.structs.replace(found, artifacts=wheels, conda=change)

    def _wheels(self, proposal: planner.Proposal, request: ResolveRequest) -> Resolution:
        environment, emit = self.environment, self.settings.stream.emit
        platform = platform_of(self.case.facts.host)
        try:
            return self.installer.resolve(msgspec.structs.replace(request, platform=platform), environment, emit)
        except NoSolution as error:
            error.details += together.reasons(self.case.facts, environment, request)
            # no wheels for conda's packages as they are; perhaps for other versions, which conda can then install
            loosened = planner.loosened(proposal, environment)
            if loosened is None:
                raise planner.blamed(self.limits.held, error) from error
            try:
                return self.installer.resolve(msgspec.structs.replace(loosened, platform=platform), environment, emit)
            except NoSolution:
                # the first reason names the packages that the user has
                raise planner.blamed(self.limits.held, error) from None


def _pins(facts: Facts) -> tuple[UserPin, ...]:
    """Return what the user states about the environment outside of it, as far as it holds there."""
    environment = facts.environment
    if environment is None:
        return ()
    return planner.binding(environment.pins, environment, planner.markers(environment, facts.host))


def _pinned(limits: PinLimits, considered: planner.Proposals) -> PinnedVersions | None:
    """Return the error where pins of the user are among the reasons against every way; None where they are not."""
    reasons = tuple(f"{item.title}: {item.why_not}" for item in considered.rejected)
    found = planner.named_in(limits.held, reasons)
    if not found:
        return None
    cause = next(text for text in reasons if planner.named_in(found, (text,)))
    return planner.pins_refusal(
        "What you have pinned leaves no repair of this environment", found, cause=cause, details=reasons
    )


def now() -> str:
    """Return the time in UTC as RFC 3339."""
    return dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")


def _no_way(facts: Facts, considered: planner.Proposals) -> NoSolution:
    environment = facts.environment
    reasons = tuple(f"{item.title}: {item.why_not}" for item in considered.rejected)
    if reasons and all(item.why_not.startswith(UNCHANGED) for item in considered.rejected):
        sound = (item.why_not.removeprefix(UNCHANGED).removeprefix(": ") for item in considered.rejected)
        return NoSolution(
            "There is nothing that this repair would change here",
            cause="; ".join(dict.fromkeys(filter(None, sound))) or None,
            hint="Run the program again: envmedic run -- CMD; if it still fails, name the environment that it runs in with -p",
            details=reasons,
        )
    if environment is not None and environment.torch is None and environment.distribution("torch") is None:
        hint = "Name the environment that the program runs in; this one has no torch"
    elif facts.host.driver_version is None:
        hint = "Plan where the program runs, or with its facts: `--host FILE`, from `envmedic facts --json` there"
    else:
        hint = "Another Python, driver or GPU changes this: `envmedic facts` shows those that were found"
    return NoSolution(
        "There is no set of distributions that would repair this environment on this host",
        cause=reasons[0] if reasons else None,
        hint=hint,
        details=reasons,
    )


def _no_move(considered: planner.Proposals) -> EnvmedicError:
    """Return the error of a move: nothing would change, or some distributions cannot follow."""
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
    """Return the local paths of wheels, and the URLs of conda packages, that are already on this machine."""
    if resolution is None:
        return frozenset()
    found = {item.local_path for item in resolution.artifacts if Path(item.local_path).is_file()}
    if conda is not None and resolution.conda is not None:
        found |= {item.url for item in resolution.conda.install if conda.is_fetched(item)}
    return frozenset(found)


def _keeping(settings: Settings, made: Plan, environment: Environment) -> Plan:
    """Return `made` with constraints: for all its changes if the user wants them, else updates of existing ones."""
    # without the updates, an old constraint would forbid the new version at the next `pip install`
    path = Path(environment.real_prefix) / CONSTRAINTS
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    names = {canonicalize_name(found[0]) for line in lines if (found := re.match(r"[A-Za-z0-9][\w.-]*", line))}
    return keeping(made, environment, everything=settings.pin, constrained=names)


def _without_own_pins(environment: Environment) -> Environment:
    """Return `environment` without the conda pins of earlier repairs by envmedic."""
    # only the user's own pins bind a new repair
    path = Path(environment.real_prefix) / CONDA_PINS
    if environment.conda is None or not path.is_file():
        return environment
    own = set(path.read_text(encoding="utf-8").splitlines())
    left = tuple(spec for spec in environment.conda.pinned if spec not in own)
    return msgspec.structs.replace(environment, conda=msgspec.structs.replace(environment.conda, pinned=left))


def _with_reproductions(plan: Plan, case: PlanningCase, environment: Environment) -> Plan:
    """Return `plan` with the user's command and the reported import, which fail before the steps and pass after them."""
    checks = []
    if case.command:
        checks.append(Check(name="command", role="reproduction", arguments=case.command, program=case.program))
    top = (case.importing or "").partition(".")[0]
    if case.importing and any(top in item.import_names for item in environment.distributions):
        checks.append(Check(name="import", role="reproduction", arguments=(case.importing,)))
        plan = _asking_another(plan, environment)
    return planner.named(msgspec.structs.replace(plan, checks=(*checks, *plan.checks))) if checks else plan


def _asking_another(plan: Plan, environment: Environment) -> Plan:
    """Return `plan` without asking whether a module still lacks the text's name, where what asks for it moves instead.

    The import that the text shows failing tells whether it is asked for any more.
    """
    moved = {change.name for change in plan.changes}

    def asked(check: Check) -> Check:
        groups = check.confirmation.groups if check.confirmation is not None else {}
        top = groups.get("module", "").partition(".")[0]
        lacking = next((item.name for item in environment.distributions if top in item.import_names), None)
        if check.confirmation is None or "name" not in groups or lacking is None or lacking in moved:
            return check
        return msgspec.structs.replace(check, confirmation=msgspec.structs.replace(check.confirmation, groups={}))

    return msgspec.structs.replace(plan, checks=tuple(map(asked, plan.checks)))
