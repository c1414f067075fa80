"""Plans for a finding, from the planner's ranked proposals and resolutions of their wheels and conda packages."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from envmedic import planner
from envmedic.api.context.observation import stage
from envmedic.api.context.other_machine import note, platform_of
from envmedic.api.context.settings import Settings
from envmedic.api.context.wiring import conda_of
from envmedic.api.planning.no_plan import no_move, no_way, none_works, pinned
from envmedic.api.planning.pin_limits import PinLimits
from envmedic.compat.import_names import module_of
from envmedic.diagnosis.vocabulary import derive
from envmedic.errors import InputError, NetworkError, NoSolution
from envmedic.model.checks import Check
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Finding
from envmedic.model.pins import UserPin
from envmedic.model.plan import CONDA_PINS, CONSTRAINTS, Plan, PlanAlternative
from envmedic.model.playbook import LoadedPlaybook
from envmedic.model.ports import CondaInstaller, Installer, Resolution, ResolveRequest
from envmedic.model.program import Program
from envmedic.planner.asked import together
from envmedic.planner.constraints import keeping
from envmedic.planner.moves.comparison import RankedWay, ResolvedMoves, compare
from envmedic.planner.moves.conflict_graph import Conflicts
from envmedic.planner.moves.hitting_sets import MoveSet

_COMES_NEXT = "it is tried where this does not prove itself"
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
        raise pinned(limits, considered) or (
            no_way(case.facts, considered) if case.finding is not None else no_move(considered)
        )
    if (conflicts := considered.conflicts) is not None:
        empty = planner.Proposals(proposals=(), conflicts=conflicts)
        maker = _PlanMaker(settings, case, environment, installer, empty, limits, stable=True)
        for made in _least_moves(maker, conflicts, consider):
            yield _with_reproductions(_keeping(settings, made, environment), case, environment)
        return
    if case.way is not None:
        considered = _led_by(considered, case.way)
    maker = _PlanMaker(settings, case, environment, installer, considered, limits)
    errors: list[NoSolution | NetworkError] = []
    yielded = False
    for number, proposal in enumerate(considered.proposals, 1):
        if errors and isinstance(errors[0], NetworkError) and not _on_default_index(proposal):
            continue
        try:
            made = maker.make(proposal)
        except (NoSolution, NetworkError) as error:
            # A user who named this way is not given another one. An unreachable network is no reason to leave the best
            # way for a worse one, unless that needs no index of PyTorch's; after another failure it is, since nothing
            # better is left.
            left = considered.proposals[number:]
            alone = isinstance(error, NetworkError) and not errors and not any(map(_on_default_index, left))
            if case.way == proposal.title or alone:
                raise
            maker.failed[proposal.title] = error.cause or error.summary
            errors.append(error)
            continue
        yielded = True
        yield _with_reproductions(_keeping(settings, made, environment), case, environment)
        maker.failed[proposal.title] = "it was tried in a clone, and did not prove itself"
    if not yielded:
        raise none_works(errors)


def _on_default_index(proposal: planner.Proposal) -> bool:
    """Whether a way takes torch's family from the default index alone."""
    return proposal.family is not None and proposal.family.default_index


def _least_moves(maker: _PlanMaker, conflicts: Conflicts, consider: Callable[..., planner.Proposals]) -> Iterator[Plan]:
    """Yield the plans that end `conflicts`, those that move the least first. Raises NoSolution and InputError."""
    errors: list[NoSolution | NetworkError] = []
    # a stable sort: the reading that the user named comes first, then those whose end something can show
    shows = bool(maker.case.command) or _importing(maker.case, maker.environment) is not None
    left = sorted(
        (conflicts, *conflicts.instead),
        key=lambda item: (item.title != maker.case.way, item.unseen and not shows),
    )
    solved = False
    for unseen, group in groupby(tuple(left), key=lambda item: item.unseen):
        found = ((one, made) for one in group for made in _ways_out(maker, one, consider, errors, further=not unseen))
        for one, made in _fewest_back(found, maker.case.way) if unseen else found:
            solved = True
            left = [item for item in left if item is not one]
            later = (PlanAlternative(title=item.title, why_not=_COMES_NEXT) for item in left)
            checks = tuple(item for item in made.checks if item.confirmation is None or not (unseen and shows))
            alternatives = (*made.alternatives, *later)
            yield planner.named(msgspec.structs.replace(made, checks=checks, alternatives=alternatives))
    if solved:
        return
    # every other way goes before one with a pre-release
    if maker.stable and any(isinstance(error, NoSolution) and error.early for error in errors):
        yield from _least_moves(replace(maker, stable=False, failed={}), conflicts, consider)
    else:
        raise none_works(errors) if errors else no_way(maker.case.facts, consider())


def _fewest_back(found: Iterable[tuple[Conflicts, Plan]], named: str | None) -> list[tuple[Conflicts, Plan]]:
    """Return the plans for newer releases of one package; what takes others back comes after what does not."""
    return sorted(
        found, key=lambda pair: (pair[0].title != named, pair[1].choice.cost.downgrades if pair[1].choice else 0)
    )


def _ways_out(
    maker: _PlanMaker,
    conflicts: Conflicts,
    consider: Callable[..., planner.Proposals],
    errors: list[NoSolution | NetworkError],
    *,
    further: bool,
) -> Iterator[Plan]:
    """Yield the plans for one reading of what is at odds; `errors` gets the reasons against ways.

    With `further`, ways that move more come after those that move the least, none of which has proven itself then.
    """
    made: dict[MoveSet, Plan] = {}
    answers: dict[MoveSet, ResolvedMoves] = {}
    unproven: set[MoveSet] = set()

    def resolves(moves: MoveSet) -> ResolvedMoves:
        if moves not in answers:
            answers[moves] = _resolved(maker, consider(moves=moves), moves, made, errors)
        return ResolvedMoves(None) if moves in unproven else answers[moves]

    asked = maker.case.way if conflicts is maker.considered.conflicts else None
    larger = True
    while larger:
        compared = compare(conflicts, resolves)
        for way in _led_by_way(compared.ways, asked, conflicts):
            yield planner.named(compared.explained(made[way.moves], way, maker.failed))
            maker.failed[way.moves.title] = "it was tried in a clone, and did not prove itself"
            unproven.add(way.moves)
        larger = further and compared.larger is not None and asked is None


def _resolved(
    maker: _PlanMaker,
    considered: planner.Proposals,
    moves: MoveSet,
    made: dict[MoveSet, Plan],
    errors: list[NoSolution | NetworkError],
) -> ResolvedMoves:
    """Return what the first proposal with a solution moves, whose plan goes into `made`."""
    held: tuple[str, ...] = ()
    for proposal in considered.proposals:
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


def _led_by_way(ways: Sequence[RankedWay], asked: str | None, conflicts: Conflicts) -> list[RankedWay]:
    """Return `ways` with the one that is asked for first. Raises InputError where there are others alone."""
    if asked is not None and ways:
        titles = (*(item.moves.title for item in ways), *(item.title for item in conflicts.instead))
        if asked not in titles:
            raise InputError(
                f"There is no way called {asked!r} to repair this here", hint="Name one of these", details=titles
            )
    return sorted(ways, key=lambda item: asked is not None and item.moves.title != asked)


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
    stable: bool = False
    """Whether a way that has only a pre-release in the place of a release counts as one without a solution."""

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
        here = {"platform": platform_of(self.case.facts.host), "stable": self.stable}
        try:
            return self.installer.resolve(msgspec.structs.replace(request, **here), environment, emit)
        except NoSolution as error:
            error.details += together.reasons(self.case.facts, environment, request)
            # no wheels for conda's packages as they are; perhaps for other versions, which conda can then install
            loosened = planner.loosened(proposal, environment)
            if loosened is None:
                raise planner.blamed(self.limits.held, error) from error
            try:
                return self.installer.resolve(msgspec.structs.replace(loosened, **here), environment, emit)
            except NoSolution:
                # the first reason names the packages that the user has
                raise planner.blamed(self.limits.held, error) from None


def _pins(facts: Facts) -> tuple[UserPin, ...]:
    """Return what the user states about the environment outside of it, as far as it holds there."""
    environment = facts.environment
    if environment is None:
        return ()
    return planner.binding(environment.pins, environment, planner.markers(environment, facts.host))


def now() -> str:
    """Return the time in UTC as RFC 3339."""
    return dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")


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
    importing = _importing(case, environment) or _missed(case, plan)
    if importing is not None:
        checks.append(Check(name="import", role="reproduction", arguments=(importing,)))
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


def _missed(case: PlanningCase, plan: Plan) -> str | None:
    """Return the module that the text misses, where the plan installs what brings it."""
    groups = case.finding.groups if case.finding is not None else {}
    module = groups.get("module") if "name" not in groups else None
    brought = {module_of(change.name) for change in plan.changes if change.before is None}
    return module if module in brought else None


def _importing(case: PlanningCase, environment: Environment) -> str | None:
    """Return the module whose import the text shows failing, where something installed brings it."""
    top = (case.importing or "").partition(".")[0]
    return case.importing if any(top in item.import_names for item in environment.distributions) else None
