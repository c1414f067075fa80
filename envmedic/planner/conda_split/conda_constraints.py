"""What wheels ask of conda's packages: known only once the wheels are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.compat.torch_family import conda_families as channels
from envmedic.model.conda import CondaRequest
from envmedic.model.facts import Environment
from envmedic.model.plan import Artifact
from envmedic.model.ports import ResolveRequest
from envmedic.planner.changes.ownership import Owners
from envmedic.planner.changes.requirement_checks import applicable, meets
from envmedic.planner.conda_split import match_specs
from envmedic.planner.conda_split.removal_closure import siblings
from envmedic.planner.proposal import Proposal


def divided(
    proposal: Proposal, artifacts: Iterable[Artifact], environment: Environment, values: Mapping[str, str]
) -> tuple[tuple[Artifact, ...], CondaRequest | None]:
    """Return the wheels without those of what conda owns, and what is asked of conda, with what these wheels need.

    What conda has in a version that the wheels accept stays as it is.
    """
    found = tuple(artifacts)
    if environment.conda is None:
        return found, proposal.conda
    owners = Owners(environment)
    condas = _condas(found, owners, proposal)
    kept = _reached(proposal, [item for item in found if _name(item) not in condas], values)
    specs = [text for name in condas for text in _spec(name, kept, owners, values)]
    return kept, _with_specs(proposal, specs, environment) if specs else proposal.conda


def loosened(proposal: Proposal, environment: Environment) -> ResolveRequest | None:
    """Return a proposal's request on which what conda has may be wanted in other versions; None where none may be."""
    if proposal.request is None or environment.conda is None:
        return None
    owners = Owners(environment)
    gone = set(proposal.conda.remove) if proposal.conda is not None else set()
    names = dict.fromkeys(item.name for item in environment.distributions if owners.kind(item.name) == "conda")
    stays = (name for name in names if (package := owners.package(name)) is not None and package.name not in gone)
    return msgspec.structs.replace(
        proposal.request, replaceable=tuple(dict.fromkeys((*proposal.request.replaceable, *stays)))
    )


def _name(item: Artifact) -> str:
    return canonicalize_name(item.name)


def _condas(artifacts: Iterable[Artifact], owners: Owners, proposal: Proposal) -> tuple[str, ...]:
    """Names of the wheels whose distributions are conda's, and stay so."""
    asked = proposal.request.pins if proposal.request is not None else ()
    pinned = {canonicalize_name(Requirement(text).name) for text in asked}
    gone = set(proposal.conda.remove) if proposal.conda is not None else set()
    names = (_name(item) for item in artifacts)
    return tuple(
        name
        for name in names
        if name not in pinned and (package := owners.package(name)) is not None and package.name not in gone
    )


def _reached(proposal: Proposal, artifacts: list[Artifact], values: Mapping[str, str]) -> tuple[Artifact, ...]:
    """Those that are pinned, or that others among them require: what only conda's packages need, these bring."""
    by_name = {_name(item): item for item in artifacts}
    todo: list[str] = [
        canonicalize_name(Requirement(text).name) for text in (proposal.request.pins if proposal.request else ())
    ]
    reached: set[str] = set()
    while todo:
        name = todo.pop()
        if name in by_name and name not in reached:
            reached.add(name)
            todo += (canonicalize_name(item.name) for item in _requirements(by_name[name], values))
    return tuple(item for item in artifacts if _name(item) in reached)


def _requirements(item: Artifact, values: Mapping[str, str]) -> Iterator[Requirement]:
    found = (applicable(text, values) for text in item.requires)
    return (requirement for requirement in found if requirement is not None)


def _spec(name: str, artifacts: Iterable[Artifact], owners: Owners, values: Mapping[str, str]) -> Iterator[str]:
    """The match spec for what the wheels ask of a distribution of conda's that it does not meet as it is."""
    package = owners.package(name)
    asked = [it for item in artifacts for it in _requirements(item, values) if canonicalize_name(it.name) == name]
    if package is None or all(meets(item, package.version) for item in asked):
        return
    yield match_specs.spec(package.name, match_specs.joined(name, asked))


def _with_specs(proposal: Proposal, specs: list[str], environment: Environment) -> CondaRequest:
    before = proposal.conda or CondaRequest(offline=proposal.request.offline if proposal.request else False)
    conda = Owners(environment).conda
    named = [text.partition(" ")[0] for text in specs]
    return msgspec.structs.replace(
        before,
        specs=tuple(dict.fromkeys((*before.specs, *specs))),
        replaceable=tuple(dict.fromkeys((*before.replaceable, *siblings(conda, named)))),
    )


def brings(package: str, environment: Environment, known: Iterable[str] = (), *, python: bool) -> tuple[str, ...]:
    """The distributions of a conda package: as a solver knows, as the installed one has them, or by its name.

    `python`: whether it depends on Python; else only the data make it a distribution.
    """
    told = tuple(known)
    if told:
        return told
    conda = Owners(environment).conda
    installed = conda.package(package)
    if installed is not None:
        return installed.distributions
    name = channels.distribution_of(package)
    return (name,) if python else ()
