"""Proposals: the ranked ways to carry a playbook out in this environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.compat import family
from envmedic.errors import NoSolution, NotAnEnvironment
from envmedic.model.facts import Environment, Facts, Host
from envmedic.model.family import FamilyQuery, FamilySet
from envmedic.model.findings import Finding
from envmedic.model.plan import PlanAlternative
from envmedic.model.playbook import FactValue, LoadedPlaybook
from envmedic.model.ports import ResolveRequest
from envmedic.planner import labels, members, question, rebuild, removal
from envmedic.planner.following import Following, following
from envmedic.planner.proposal import Proposal, Proposals
from envmedic.planner.requirements import applicable, markers, meets, newly_unmet
from envmedic.planner.steps import Wanted, gather, values_of

WITH_TORCH = ("nvidia-*", "cuda-toolkit", "cuda-bindings", "cuda-pathfinder", "triton", "pytorch-triton")
"""What torch pins itself, beside the requirements of the installed one: it changes with torch."""


@dataclass(frozen=True)
class Options:
    """What the user decided about where wheels come from."""

    find_links: tuple[str, ...] = ()
    offline: bool = False
    torch_index: str = ResolveRequest(pins=()).torch_index


@dataclass(frozen=True)
class _Case:
    """Everything that one proposal is made from."""

    environment: Environment
    host: Host
    wanted: Wanted
    options: Options
    values: Mapping[str, str]
    """Marker variables of the environment's interpreter on that host."""
    derived: Mapping[str, FactValue]
    """The flat facts."""


def proposals(
    facts: Facts,
    finding: Finding,
    loaded: LoadedPlaybook,
    *,
    values: Mapping[str, FactValue] | None = None,
    options: Options | None = None,
) -> Proposals:
    """Return the ways to carry `loaded` out, best first, and what was rejected with its reason.

    `values` are the derived facts that placeholders may name. Raises `NotAnEnvironment` without
    facts of an environment, and `NoSolution` for steps that are not supported and for a family, or
    another distribution to change, that conda owns.
    """
    environment = facts.environment
    if environment is None:
        raise NotAnEnvironment("No environment was observed", hint="Name one with -p PREFIX")
    wanted = gather(loaded, values_of(loaded, finding, values or {}))
    case = _Case(
        environment=environment,
        host=facts.host,
        wanted=wanted,
        options=options or Options(),
        values=markers(environment, facts.host),
        derived=values or {},
    )
    _refuse_conda(case)
    _plan_builds(wanted, environment, values or {})
    if wanted.family is None:
        found, refused = _proposal(case, None, None)
        return Proposals(proposals=(found,) if found else (), rejected=refused)
    query = question.query_of(facts, environment, wanted.family, loaded)
    if not query.installed and not any(question.left_over(environment, name) for name in question.FAMILY):
        nothing = PlanAlternative(title="the torch family", why_not="none of it is installed here", feasible=False)
        return Proposals(proposals=(), rejected=(nothing,))
    return _of_answer(case, query)


def _plan_builds(wanted: Wanted, environment: Environment, values: Mapping[str, FactValue]) -> None:
    """Turn what is to be built again into steps, and what the builds need into requirements to install before."""
    made = [rebuild.step(name, environment, values) for name in wanted.rebuilt]
    wanted.after[:0] = [step for step, _ in made]
    wanted.pins += dict.fromkeys(text for _, needed in made for text in needed)


def _of_answer(case: _Case, query: FamilyQuery) -> Proposals:
    answer = family.answer(query)
    ready: list[Proposal] = []
    rejected: list[PlanAlternative] = []
    for found in answer.sets:
        proposal, refused = _proposal(case, found, query)
        ready += (proposal,) if proposal else ()
        rejected += refused
    rejected += (
        PlanAlternative(title=item.title, why_not=f"{item.reason} ({item.rule}; {item.source})", feasible=False)
        for item in answer.rejected
    )
    return Proposals(proposals=tuple(ready), rejected=tuple(rejected))


def _refuse_conda(case: _Case) -> None:
    """Refuse where conda owns what would change: a distribution never gets two owners."""
    wanted = case.wanted
    names = {
        *wanted.purged,
        *wanted.replaced,
        *wanted.rebuilt,
        *(canonicalize_name(Requirement(pin).name) for pin in wanted.pins),
    }
    names |= set(question.FAMILY) if wanted.family else set()
    owned = [item for item in case.environment.distributions if item.name in names and item.owner == "conda"]
    native = [item for item in case.environment.native_packages if item.name in names]
    if owned or native:
        texts = [f"{item.name} {item.version}" for item in owned] + [f"{item.name} {item.version}" for item in native]
        what = ", ".join(dict.fromkeys(texts))
        raise NoSolution(
            f"conda owns {what}: conda-owned distributions are not handled yet",
            cause="replacing them with wheels would leave files that two package managers believe to own",
            hint="Repair these with conda, or make an environment in which pip or uv installed the torch family",
            details=tuple(f"{item.name} {item.version} ({item.metadata_path})" for item in owned),
        )


def _proposal(
    case: _Case, found: FamilySet | None, query: FamilyQuery | None
) -> tuple[Proposal | None, tuple[PlanAlternative, ...]]:
    """Return the proposal for one set (or for a playbook without one), or why it is refused."""
    wanted, environment = case.wanted, case.environment
    purged = tuple(wanted.purged)
    changed = members.changed(environment, found, purged) if found else ()
    follows = _following(case, found, changed)
    pins = tuple(dict.fromkeys((*_family_pins(found, changed), *wanted.pins, *follows.pins)))
    title = _title(environment, found, changed, wanted)
    gone = _gone(case, found, changed)
    refusal = _refusal(case, found, changed, gone, follows)
    if refusal:
        return None, (PlanAlternative(title=title, why_not=refusal, feasible=False),)
    cleaned = (*purged, *changed) if wanted.leftovers else ()
    purge = removal.purge(environment, gone, cleaned, every_leftover=wanted.every_leftover)
    if not (pins or purge.distributions or purge.leftovers or wanted.after):
        return None, (PlanAlternative(title=title, why_not="it changes nothing", feasible=False),)
    proposal = Proposal(
        title=title,
        family=found,
        changed=changed,
        purge=purge,
        request=_request(case, found, query, changed, pins) if pins else None,
        after=(*follows.builds, *wanted.after),
        cost=_cost(environment, found, changed),
        notes=(*_notes(environment, gone), *follows.notes),
    )
    return proposal, ()


def _gone(case: _Case, found: FamilySet | None, changed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the distributions whose installed copies are removed.

    A member of the family that the playbook purges, and that is in order, stays where it is.
    """
    kept = set(found.versions) - set(changed) if found else set()
    return tuple(
        dict.fromkeys((*changed, *(name for name in case.wanted.purged if name not in kept), *case.wanted.replaced))
    )


def _family_pins(found: FamilySet | None, changed: tuple[str, ...]) -> tuple[str, ...]:
    """Return exact pins, without local labels. triton comes along with a torch that changes."""
    if found is None:
        return ()
    names = [name for name in changed if not (name == "triton" and "torch" in changed)]
    return tuple(f"{name}=={found.versions[name]}" for name in names)


def _request(
    case: _Case, found: FamilySet | None, query: FamilyQuery | None, changed: tuple[str, ...], pins: tuple[str, ...]
) -> ResolveRequest:
    wanted, served = case.wanted, found is None or query is None or family.default_index_serves(found, changed, query)
    settled = labels.settle(pins, case.environment, case.host)
    variant = wanted.variant or (found.variant if found else settled.variant)
    chosen = wanted.variant is not None or not served or settled.needs_variant_index
    return ResolveRequest(
        pins=settled.pins,
        variant=variant,
        needs_variant_index=variant is not None and chosen,
        replaceable=_replaceable(case.environment, case.values) if "torch" in changed or _repins_torch(case) else (),
        find_links=case.options.find_links,
        offline=case.options.offline,
        torch_index=case.options.torch_index,
        indexes=tuple(wanted.indexes),
    )


def _repins_torch(case: _Case) -> bool:
    """Whether an install step asks for another torch than the one that is there."""
    torch = case.environment.distribution("torch")
    asked = [item for item in map(Requirement, case.wanted.pins) if canonicalize_name(item.name) == "torch"]
    return torch is not None and any(not meets(item, torch.version) for item in asked)


def _replaceable(environment: Environment, values: Mapping[str, str]) -> tuple[str, ...]:
    """Return what may change along with torch: what it pins, and what the installed one requires."""
    torch = environment.distribution("torch")
    required = (applicable(text, values) for text in (torch.requires if torch else ()))
    names = (canonicalize_name(item.name) for item in required if item is not None)
    return tuple(dict.fromkeys((*WITH_TORCH, *(name for name in names if name not in question.FAMILY))))


def _following(case: _Case, found: FamilySet | None, changed: tuple[str, ...]) -> Following:
    """Return how what is bound to torch follows it, where torch becomes another release or build."""
    wanted, environment = case.wanted, case.environment
    if not (_repins_torch(case) or ("torch" in changed and _torch_moves(environment, found))):
        return Following()
    handled = {*wanted.purged, *wanted.replaced, *wanted.rebuilt}
    handled |= {canonicalize_name(Requirement(pin).name) for pin in wanted.pins}
    variant = environment.torch.variant if environment.torch is not None else None
    same_cuda = found is not None and variant == found.variant
    return following(environment, case.values, case.derived, handled=handled, same_cuda=same_cuda)


def _refusal(
    case: _Case, found: FamilySet | None, changed: tuple[str, ...], gone: tuple[str, ...], follows: Following
) -> str:
    """Return why the change would break what stays, or an empty string."""
    after: dict[str, str | None] = dict.fromkeys(gone)
    for name in changed:
        after[name] = found.versions[name] if found else None
    pinned = {canonicalize_name(Requirement(pin).name) for pin in case.wanted.pins}
    after = {name: value for name, value in after.items() if name not in pinned}
    unmet = newly_unmet(case.environment, after, values=case.values)
    new = pinned | follows.replaced
    broken = [item.sentence() for item in unmet if item.distribution.partition(" ")[0] not in new]
    broken += follows.stuck
    return "it would break what stays: " + "; ".join(broken) if broken else ""


def _torch_moves(environment: Environment, found: FamilySet | None) -> bool:
    """Whether torch becomes another release or build, rather than the same one anew."""
    torch, build = environment.distribution("torch"), environment.torch
    if torch is None or found is None:
        return False
    return torch.public != found.versions["torch"] or (build is not None and build.variant not in {None, found.variant})


def _title(environment: Environment, found: FamilySet | None, changed: tuple[str, ...], wanted: Wanted) -> str:
    if found is None:
        built = (f"{name} from its source" for name in wanted.rebuilt)
        return ", ".join((*wanted.pins, *built)) or "the playbook's steps"
    torch = environment.distribution("torch")
    parts = [f"{name} {found.versions[name]}" for name in changed]
    if torch is not None and "torch" not in changed:
        return f"{', '.join(parts) or 'nothing'} beside the installed torch {torch.version}"
    return f"{', '.join(parts)} ({found.variant})"


def _cost(environment: Environment, found: FamilySet | None, changed: tuple[str, ...]) -> str:
    """Return what a proposal changes beyond companions."""
    torch = environment.distribution("torch")
    if found is None or torch is None or "torch" not in changed:
        return "it changes " + ", ".join(changed) if changed else ""
    return f"it replaces torch {torch.version} too"


def _notes(environment: Environment, gone: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the user should know: copies outside the prefix stay, and may be found first."""
    outside = (item for item in environment.distributions if item.outside_prefix and item.name in gone)
    return tuple(f"{item.name} {item.version} in {item.site} is outside the environment and stays" for item in outside)
