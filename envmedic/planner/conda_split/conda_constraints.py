"""Requirements of resolved wheels on conda packages, known only after the wheels are resolved. Pure."""

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
    """Return the wheels of distributions that conda does not own, and the request to conda with their requirements.

    A conda package in a version that the wheels accept stays as it is.
    """
    # pip's resolvers know nothing of conda, so their answer also contains wheels of distributions that conda owns
    found = tuple(artifacts)
    if environment.conda is None:
        return found, proposal.conda
    owners = Owners(environment)
    condas = _condas(found, owners, proposal)
    kept = _reached(proposal, [item for item in found if _name(item) not in condas], values)
    specs = [text for name in condas for text in _spec(name, kept, owners, values)]
    return kept, _with_specs(proposal, specs, environment) if specs else proposal.conda


def loosened(proposal: Proposal, environment: Environment) -> ResolveRequest | None:
    """Return a proposal's request in which conda's distributions may change too; None where it has no such request."""
    if proposal.request is None or environment.conda is None:
        return None
    owners = Owners(environment)
    gone = set(proposal.conda.remove) if proposal.conda is not None else set()
    names = dict.fromkeys(item.name for item in environment.distributions if owners.kind(item.name) == "conda")
    # a package that leaves conda is no constraint any more, and its wheel is pinned already
    stays = (name for name in names if (package := owners.package(name)) is not None and package.name not in gone)
    return msgspec.structs.replace(
        proposal.request, replaceable=tuple(dict.fromkeys((*proposal.request.replaceable, *stays)))
    )


def _name(item: Artifact) -> str:
    return canonicalize_name(item.name)


def _condas(artifacts: Iterable[Artifact], owners: Owners, proposal: Proposal) -> tuple[str, ...]:
    """Names of the wheels whose distributions conda owns and keeps."""
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
    """Return the pinned wheels and those that they require, directly or not."""
    by_name = {_name(item): item for item in artifacts}
    # a wheel that only a dropped wheel required is useless: conda's package brings its own dependencies
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
    """Yield the match spec for the wheels' requirements on a conda package, where its version does not meet them."""
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
    """Return the distributions of a conda package: as the solver knows, as the installed one has them, or by its name.

    `python`: whether it depends on Python; else only the data make it a distribution.
    """
    told = tuple(known)
    if told:
        return told
    conda = Owners(environment).conda
    # the installed package of that name is right more often than a guess from the name: `pytorch` contains torch
    installed = conda.package(package)
    if installed is not None:
        return installed.distributions
    name = channels.distribution_of(package)
    return (name,) if python else ()
