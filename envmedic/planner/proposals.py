"""Ranked proposals: the ways to carry out a playbook in one environment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.compat import tables
from envmedic.compat.installed_requirements import satisfying
from envmedic.compat.torch_family import conda_families as channels
from envmedic.compat.torch_family import family, newer_torch
from envmedic.compat.versions import allows
from envmedic.errors import NoSolution, NotAnEnvironment
from envmedic.model.answers.family import FamilyQuery, FamilySet
from envmedic.model.conda import CondaEnvironment
from envmedic.model.facts import Environment, Facts
from envmedic.model.findings import Finding
from envmedic.model.plan import PlanAlternative, Purge
from envmedic.model.playbook import FactValue, LoadedPlaybook
from envmedic.model.ports import ResolveRequest
from envmedic.planner import family_move, user_pins
from envmedic.planner.changes import rebuild_plan, removal
from envmedic.planner.changes.dependents import Dependents, along, following
from envmedic.planner.changes.ownership import Owners
from envmedic.planner.changes.requirement_checks import Unmet, applicable, markers, meets, newly_unmet
from envmedic.planner.conda_split.split import DistributionChanges, Divider, pinned, widened
from envmedic.planner.family import family_query, local_versions, members
from envmedic.planner.moves.hitting_sets import MoveSet
from envmedic.planner.placeholders import values_of
from envmedic.planner.proposal import IN_THE_WAY, Proposal, Proposals
from envmedic.planner.proposal_case import Options, ProposalCase, cases, cuda_build, family_step, no_wheel, suffix
from envmedic.planner.remedies import Situation
from envmedic.planner.remedies.building import BuildInputs, build_inputs
from envmedic.planner.requested_changes import RequestedChanges, gather

WITH_TORCH = ("nvidia-*", "cuda-toolkit", "cuda-bindings", "cuda-pathfinder", "triton", "pytorch-triton")
"""Distributions that torch pins exactly. The new torch may require others than the installed one did."""
_WITH_RESOURCES = "<82"
"""Releases of setuptools that have pkg_resources. Source: the history of setuptools."""
TORCHS_OWN = ("filelock", "fsspec", "jinja2", "mpmath", "networkx", "setuptools", "sympy", "typing-extensions")
"""Requirements of every torch wheel that are not its own. Source: METADATA of torch 2.0 to 2.15."""


def proposals(
    facts: Facts,
    finding: Finding | None,
    loaded: LoadedPlaybook,
    *,
    values: Mapping[str, FactValue] | None = None,
    options: Options | None = None,
    moves: MoveSet | None = None,
    importing: str | None = None,
) -> Proposals:
    """Return the proposals for `loaded`, best first, and the rejected ones with their reasons.

    Without a `finding` there is no fault, and the torch family is to move to other releases. `moves` is the way out of
    conflicts of requirements, where there are several; None takes the one that should move least.
    `values` are the derived facts that placeholders may name, `importing` is the module whose import fails. Raises `NotAnEnvironment` without
    facts of an environment, and `NoSolution` for unsupported steps, for remedies that cannot decide here, and for
    damaged records of conda.
    """
    environment = facts.environment
    if environment is None:
        raise NotAnEnvironment("No environment was observed", hint="Name one with -p PREFIX")
    groups = finding.groups if finding is not None else {}
    situation = Situation(facts, environment, groups, importing)
    wanted = gather(loaded, values_of(loaded, finding, values or {}), situation, moves)
    builds = build_inputs(facts)
    case = ProposalCase(
        environment=environment,
        host=facts.host,
        wanted=wanted,
        options=options or Options(),
        values=markers(environment, facts.host),
        builds=builds,
        moving=finding is None,
    )
    # Before the cases are split: builds add requirements to `wanted`, which all cases share.
    _plan_builds(wanted, environment, builds)
    if environment.conda is None:
        return msgspec.structs.replace(_of_case(case, facts, loaded), conflicts=wanted.conflicts)
    found = [(item, _of_case(item, facts, loaded)) for item in cases(case)]
    ready = tuple(item for _, one in found for item in one.proposals)
    # advice and variables touch no file, so damaged records do not matter to them
    if any(item.conda is not None or item.request is not None or item.purge.names for item in ready):
        _refuse_damaged(environment.conda)
    # the user of a conda prefix expects conda's packages, so a plan of wheels says why conda has none
    refused = [item for way, one in found for item in one.rejected if way.by_conda]
    if refused and not any(one.proposals for way, one in found if way.by_conda):
        told = f"conda has no torch family that fits, so it comes as wheels: {refused[0].title}: {refused[0].why_not}"
        ready = tuple(msgspec.structs.replace(item, notes=(told, *item.notes)) for item in ready)
    rejected = tuple(dict.fromkeys(item for _, one in found for item in one.rejected))
    return Proposals(proposals=ready, rejected=rejected, conflicts=wanted.conflicts)


def _refuse_damaged(conda: CondaEnvironment) -> None:
    """Refuse unreadable records: their packages would count as absent, and their files as unowned."""
    if conda.damaged:
        raise NoSolution(
            f"conda's records of this environment are damaged: {', '.join(conda.damaged)}",
            cause="what these packages are, and which files are theirs, cannot be known; conda refuses it as well",
            hint="Put these files back from a backup, or make the environment anew (conda env export, conda env create)",
            details=conda.damaged,
        )


def _of_case(case: ProposalCase, facts: Facts, loaded: LoadedPlaybook) -> Proposals:
    """The proposals of one case."""
    environment, step = case.environment, family_step(case)
    if step is None:
        found, refused = _proposal(case, None, None)
        return Proposals(proposals=found, rejected=refused)
    query = msgspec.structs.replace(family_query.query_of(facts, environment, step, loaded), forward=case.moving)
    # a family step repairs members; without any member, or remains of one, it must not install torch unasked
    if not query.installed and not any(family_query.left_over(environment, name) for name in family_query.FAMILY):
        nothing = PlanAlternative(title="the torch family", why_not="none of it is installed here", feasible=False)
        return Proposals(proposals=(), rejected=(nothing,))
    return _of_answer(case, query)


def _plan_builds(wanted: RequestedChanges, environment: Environment, builds: BuildInputs) -> None:
    """Turn distributions to rebuild into steps, and the missing build requirements into requirements to install."""
    made = [rebuild_plan.step(name, environment, builds) for name in wanted.rebuilt]
    # in front of the playbook's late steps, which count on a finished installation
    wanted.after[:0] = [step for step, _ in made]
    wanted.pins += dict.fromkeys(text for _, needed in made for text in needed)


def _of_answer(case: ProposalCase, query: FamilyQuery) -> Proposals:
    answer = family.answer(query) if case.flavour is None else channels.answer(query, case.flavour)
    ready: list[Proposal] = []
    rejected: list[PlanAlternative] = []
    for found in answer.sets:
        # a repair may install the same set again, since its files may be damaged; a move may not
        absent = family_move.UNCHANGED if case.moving and family_move.is_there(case, found) else no_wheel(case, found)
        if absent:
            rejected.append(
                PlanAlternative(
                    title=_title(case.environment, found, ("torch",), case.wanted), why_not=absent, feasible=False
                )
            )
            continue
        made, refused = _proposal(case, found, query)
        ready += made
        rejected += refused
    rejected += (
        PlanAlternative(title=item.title, why_not=f"{item.reason} ({item.rule}; {item.source})", feasible=False)
        for item in answer.rejected
    )
    return Proposals(proposals=tuple(ready), rejected=tuple(rejected))


def _proposal(
    case: ProposalCase, found: FamilySet | None, query: FamilyQuery | None
) -> tuple[tuple[Proposal, ...], tuple[PlanAlternative, ...]]:
    """Return the proposals for one set (or for a playbook without a family step), or its rejection."""
    wanted = case.wanted
    changed = _changed(case, found)
    title = _title(case.environment, found, changed, wanted)
    gone = _gone(case, found, changed)
    unmet = _unmet(case, found, changed, gone)
    follows = _following(case, found, changed)
    if case.moving:
        # a repair never upgrades bystanders; a move may, because the user asked for other releases
        follows = along(follows, unmet, case.environment, _moved(case))
    refusal = _refusal(case, unmet, follows) or "; ".join(_unpinned(case, found, changed))
    if refusal:
        return (), (PlanAlternative(title=title + suffix(case), why_not=refusal, feasible=False),)
    draft = Proposal(
        title=title,
        family=found,
        changed=changed,
        purge=Purge(),
        after=(*follows.builds, *wanted.after),
        cost="" if case.moving else _cost(case.environment, found, changed),
        notes=(
            *_notes(case.environment, gone),
            *_asked(found),
            *follows.notes,
            *(family_move.unseen_driver(case, found) if case.moving else ()),
        ),
    )
    asked = tuple(dict.fromkeys((*wanted.pins, *follows.pins)))
    made = (
        _with_all_in_the_way(_by_wheels(case, draft, query, asked, gone), follows)
        if case.side is None
        else _by_both(case, draft, query, asked, gone)
    )
    ready = tuple(item for item in made if _changes_anything(item))
    why_not = ": ".join(filter(None, (family_move.UNCHANGED, "; ".join(wanted.sound))))
    nothing = PlanAlternative(title=title + suffix(case), why_not=why_not, feasible=False)
    return ready, () if ready else (nothing,)


def _changed(case: ProposalCase, found: FamilySet | None) -> tuple[str, ...]:
    """Members of the family to install: the wrong ones, and those that get another owner."""
    if found is None:
        return ()
    wrong = members.changed(case.environment, found, tuple(case.wanted.purged))
    moved = case.side.moved if case.side is not None else frozenset()
    if case.by_conda and "torch" in wrong:
        # conda builds each companion for one build of torch, so an equal version is not the same package
        moved = frozenset(name for name in found.versions if case.environment.distribution(name) is not None)
    return tuple(name for name in family_query.FAMILY if name in wrong or (name in moved and name in found.versions))


def _changes_anything(proposal: Proposal) -> bool:
    purge = proposal.purge
    return bool(
        proposal.request or proposal.conda or purge.distributions or purge.by_path or purge.leftovers or proposal.after
    )


def _by_wheels(
    case: ProposalCase, draft: Proposal, query: FamilyQuery | None, asked: tuple[str, ...], gone: tuple[str, ...]
) -> Proposal:
    """Return the proposal for an environment without conda."""
    pins = tuple(dict.fromkeys((*_family_pins(draft.family, draft.changed), *asked)))
    return msgspec.structs.replace(
        draft,
        purge=_purge(case, case.environment, draft, gone),
        request=_request(case, draft.family, query, draft.changed, pins) if pins else None,
    )


def _with_all_in_the_way(made: Proposal, follows: Dependents) -> tuple[Proposal, ...]:
    """Return the proposal; where dependents get other releases, also a wider one in which anything may change."""
    if made.request is None or not follows.notes or not follows.replaced:
        return (made,)
    # Second in rank, and resolved only if the narrow one has no solution: newer dependents often need newer libraries
    # that nothing here asked to change.
    request = msgspec.structs.replace(made.request, replaceable=("*",))
    cost = f"it may change any distribution{_and(made)}"
    return made, msgspec.structs.replace(made, title=made.title + IN_THE_WAY, request=request, cost=cost)


def _by_both(
    case: ProposalCase, draft: Proposal, query: FamilyQuery | None, asked: tuple[str, ...], gone: tuple[str, ...]
) -> tuple[Proposal, ...]:
    """Return the proposals for a conda prefix: conda changes only what it must, or also what is in the way."""
    side = case.side
    if side is None:
        return (_by_wheels(case, draft, query, asked, gone),)
    divider = Divider(side, case.flavour)
    wish = DistributionChanges(
        draft.family, draft.changed, asked, gone, tuple(case.wanted.reinstalled), case.options.offline
    )
    shares, leaving = divider.shares(wish), side.leaving.packages
    made = msgspec.structs.replace(
        draft,
        title=draft.title + suffix(case),
        # the purge must see the copies on disk, which `case.environment` has settled to one owner each already
        purge=_purge(case, case.before or case.environment, draft, shares.purged),
        request=_request(case, draft.family, query, draft.changed, shares.wheels) if shares.wheels else None,
        conda=shares.conda,
        after=pinned(draft.after, divider),
        cost=f"it takes {', '.join(leaving)} out of conda, in favour of wheels" if leaving else draft.cost,
        notes=(*draft.notes, *side.notes),
        cuda_build=cuda_build(side),
    )
    wide = widened(shares.conda, side) if shares.conda is not None else None
    if wide is None:
        return (made,)
    return made, msgspec.structs.replace(
        made, title=made.title + IN_THE_WAY, conda=wide, cost=f"conda may change any package{_and(made)}"
    )


def _and(made: Proposal) -> str:
    return f"; {made.cost}" if made.cost else ""


def _purge(case: ProposalCase, environment: Environment, draft: Proposal, gone: tuple[str, ...]) -> Purge:
    cleaned = (*case.wanted.purged, *draft.changed) if case.wanted.leftovers else ()
    return removal.purge(environment, gone, cleaned, every_leftover=case.wanted.every_leftover)


def _gone(case: ProposalCase, found: FamilySet | None, changed: tuple[str, ...]) -> tuple[str, ...]:
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
    # torch's own metadata pins triton exactly, and the resolver follows that; a second pin could only contradict
    names = [name for name in changed if not (name == "triton" and "torch" in changed)]
    return tuple(f"{name}=={found.versions[name]}" for name in names)


def _request(
    case: ProposalCase,
    found: FamilySet | None,
    query: FamilyQuery | None,
    changed: tuple[str, ...],
    pins: tuple[str, ...],
) -> ResolveRequest:
    wanted, served = case.wanted, found is None or query is None or family.default_index_serves(found, changed, query)
    labelled = local_versions.resolve_labels(pins, case.environment, case.host)
    variant = wanted.variant or (found.variant if found else labelled.variant)
    # The default index has one CUDA variant per torch release. Any other variant needs PyTorch's own index.
    chosen = wanted.variant is not None or not served or labelled.needs_variant_index
    return ResolveRequest(
        pins=labelled.pins,
        variant=variant,
        needs_variant_index=variant is not None and chosen,
        replaceable=_replaceable(case.environment, case.values) if "torch" in changed or _repins_torch(case) else (),
        find_links=case.options.find_links,
        offline=case.options.offline,
        torch_index=case.options.torch_index,
        indexes=tuple(wanted.indexes),
        constraints=(*user_pins.constraints(case.options.pins), *_limits(case.environment, pins)),
        without_files=case.options.lifts_pins,
        settles=tuple(dict.fromkeys(item.name for item in wanted.conflicts.violated))
        if wanted.conflicts is not None
        else (),
        prefers_installed=wanted.conflicts is not None,
    )


def _limits(environment: Environment, pins: tuple[str, ...]) -> tuple[str, ...]:
    """Return limits on what comes along, beyond requirements.

    setuptools 82 has no pkg_resources, which many import without a requirement on it: no repair takes it from them.
    """
    installed = environment.distribution("setuptools")
    new = installed is not None and not allows(_WITH_RESOURCES, installed.version)
    asked = [str(item.specifier) for item in map(Requirement, pins) if canonicalize_name(item.name) == "setuptools"]
    found = satisfying("setuptools", (), ",".join((*filter(None, asked), _WITH_RESOURCES)))
    return () if new or found is None else (f"setuptools{_WITH_RESOURCES}",)


def _repins_torch(case: ProposalCase) -> bool:
    """Whether an install step asks for another torch than the installed one."""
    torch = case.environment.distribution("torch")
    asked = [item for item in map(Requirement, case.wanted.pins) if canonicalize_name(item.name) == "torch"]
    return torch is not None and any(not meets(item, torch.version) for item in asked)


def _replaceable(environment: Environment, values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the distributions that may change with torch: those it pins, and those that the installed one requires."""
    torch = environment.distribution("torch")
    required = (applicable(text, values) for text in (torch.requires if torch else ()))
    names = [str(canonicalize_name(item.name)) for item in required if item is not None]
    if environment.conda is not None:
        owners = Owners(environment)
        # Conda's copies may change only in the wider request (`loosened`): a wheel over a conda package gives it two
        # owners.
        names = [name for name in (*names, *TORCHS_OWN) if owners.kind(name) != "conda"]
    return tuple(dict.fromkeys((*WITH_TORCH, *(name for name in names if name not in family_query.FAMILY))))


def _following(case: ProposalCase, found: FamilySet | None, changed: tuple[str, ...]) -> Dependents:
    """Return how distributions bound to torch follow it to another release or build."""
    wanted, environment = case.wanted, case.environment
    moves = case.side is not None and case.side.torch_moves
    if not (moves or _repins_torch(case) or ("torch" in changed and _torch_moves(environment, found))):
        return Dependents()
    handled = {*wanted.purged, *wanted.replaced, *wanted.rebuilt}
    if case.by_conda:
        # conda's solver knows which builds of its packages go with which pytorch
        owners = Owners(environment)
        handled |= {item.name for item in environment.distributions if owners.kind(item.name) == "conda"}
    handled |= {canonicalize_name(Requirement(pin).name) for pin in wanted.pins}
    variant = environment.torch.variant if environment.torch is not None else None
    # nvcc must be of torch's CUDA version to build GPU code, and the toolkit here was matched to the installed torch
    same_cuda = found is not None and variant == found.variant
    return following(environment, case.values, case.builds, handled=handled, same_cuda=same_cuda)


def _unmet(
    case: ProposalCase, found: FamilySet | None, changed: tuple[str, ...], gone: tuple[str, ...]
) -> tuple[Unmet, ...]:
    """Return the requirements of installed distributions that the change would leave unmet."""
    after: dict[str, str | None] = dict.fromkeys(gone)
    for name in changed:
        after[name] = found.versions[name] if found else None
    pinned = _pinned(case)
    # the resolver decides the version of a pinned distribution, so it cannot be judged before
    after = {name: value for name, value in after.items() if name not in pinned}
    return newly_unmet(case.environment, after, values=case.values)


def _unpinned(case: ProposalCase, found: FamilySet | None, changed: tuple[str, ...]) -> Iterator[str]:
    """Yield the user's limits that the new members of the family would not keep."""
    if found is not None:
        # a limit may name the build too, as in a file of `pip freeze`
        new = {name: f"{found.versions[name]}+{found.variant}" for name in changed}
        yield from (told for _, told in user_pins.broken(case.options.pins, new))


def _pinned(case: ProposalCase) -> set[str]:
    return {str(canonicalize_name(Requirement(pin).name)) for pin in case.wanted.pins}


def _moved(case: ProposalCase) -> set[str]:
    """Return the distributions that others decide on: those that become wheels, and those of conda's solver."""
    if case.side is None:
        return set()
    condas = {item.name for item in case.environment.distributions if case.by_conda and item.owner == "conda"}
    return {*case.side.moved, *condas}


def _refusal(case: ProposalCase, unmet: Iterable[Unmet], follows: Dependents) -> str:
    """Return why the change would break what stays, or an empty string."""
    new = _pinned(case) | follows.replaced | _moved(case)
    left = [item for item in unmet if item.distribution.partition(" ")[0] not in new]
    # a stuck dependent already says the same requirement, with the reason why it cannot follow
    broken = [item.sentence() for item in left if not any(text.startswith(item.sentence()) for text in follows.stuck)]
    broken += follows.stuck
    broken += case.side.leaving.stuck if case.side is not None else ()
    return "it would break what stays: " + "; ".join(broken) if broken else ""


def _torch_moves(environment: Environment, found: FamilySet | None) -> bool:
    """Whether torch becomes another release or build. The same one installed again does not count."""
    torch, build = environment.distribution("torch"), environment.torch
    if torch is None or found is None:
        return False
    return torch.public != found.versions["torch"] or (build is not None and build.variant not in {None, found.variant})


def _title(
    environment: Environment, found: FamilySet | None, changed: tuple[str, ...], wanted: RequestedChanges
) -> str:
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


def _asked(found: FamilySet | None) -> tuple[str, ...]:
    """Return the notes on a torch whose publication, or all that is known of it, only the index and its wheel tell."""
    torch = found.versions.get("torch") if found is not None else None
    if found is None or torch is None:
        return ()
    notes = (newer_torch.doubt(torch),) if tables.is_learned(torch) else ()
    if not found.unverified:
        return notes
    return (*notes, f"torch {torch} ({found.variant}) is newer than the tables: the index was asked for it")


def _notes(environment: Environment, gone: tuple[str, ...]) -> tuple[str, ...]:
    """Return a note for each copy outside the prefix: it stays, and Python may find it first."""
    outside = (item for item in environment.distributions if item.outside_prefix and item.name in gone)
    return tuple(f"{item.name} {item.version} in {item.site} is outside the environment and stays" for item in outside)
