"""Dependents of torch: distributions that must change when torch does. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from envmedic.compat import tables
from envmedic.compat.installed_requirements import Unmet, applicable
from envmedic.errors import NoSolution
from envmedic.model.facts import Distribution, Environment
from envmedic.model.plan import Rebuild
from envmedic.planner.changes import rebuild_plan
from envmedic.planner.family.torch_bound import bound
from envmedic.planner.remedies.building import BuildInputs


@dataclass(frozen=True)
class Dependents:
    """The changes by which distributions bound to torch follow it."""

    pins: tuple[str, ...] = ()
    """Additional requirements to resolve: releases for the new torch, and build requirements."""
    replaced: frozenset[str] = frozenset()
    """Names of the distributions that get another release."""
    builds: tuple[Rebuild, ...] = ()
    """Distributions to rebuild from source."""
    stuck: tuple[str, ...] = ()
    """Reasons of the distributions that cannot follow, one sentence each."""
    notes: tuple[str, ...] = ()


def following(
    environment: Environment,
    markers: Mapping[str, str],
    builds_with: BuildInputs,
    *,
    handled: Collection[str],
    same_cuda: bool,
) -> Dependents:
    """Return the changes of distributions bound to torch, without those that the playbook has `handled` already.

    A distribution whose metadata pins torch gets the release for the new torch. Wheels of others say nothing of
    torch, so they are rebuilt; with GPU code only where the CUDA version stays (`same_cuda`), which the toolkit fits.
    """
    pins: list[str] = []
    replaced: set[str] = set()
    builds: list[Rebuild] = []
    stuck: list[str] = []
    for item, how in bound(environment):
        if item.name in handled:
            continue
        if _names_torch(item, markers):
            replaced.add(item.name)
            # without a version: the pin on torch in its metadata leads the resolver to the right release
            pins.append(item.name)
            continue
        made = _build(item, how, environment, builds_with, same_cuda=same_cuda)
        if isinstance(made, str):
            # an unbuildable dependent is no error yet: another proposal may keep torch
            stuck.append(made)
        else:
            builds.append(made[0])
            pins += made[1]
    return Dependents(
        pins=tuple(dict.fromkeys(pins)),
        replaced=frozenset(replaced),
        builds=tuple(builds),
        stuck=tuple(stuck),
        notes=tuple(f"{step.distribution.name} is built again for the torch that comes" for step in builds),
    )


def along(found: Dependents, unmet: Iterable[Unmet], environment: Environment, moved: Collection[str]) -> Dependents:
    """Return `found` with the distributions that require the old releases, as requirements on other releases.

    A distribution that did not come from an index is not looked up there: the name on the index may belong to
    another project. `moved` names the distributions that other rules decide on.
    """
    replaced: dict[str, str] = {}
    stuck: list[str] = []
    for item in unmet:
        name = item.distribution.partition(" ")[0]
        installed = environment.distribution(name)
        if name in moved or name in found.replaced or installed is None:
            continue
        if installed.origin.kind == "index":
            replaced.setdefault(
                name, f"{item.distribution} requires {item.requirement}, so another release of it comes"
            )
        else:
            stuck.append(f"{item.sentence()}, and it was not installed from an index")
    return replace(
        found,
        pins=tuple(dict.fromkeys((*found.pins, *replaced))),
        replaced=found.replaced | set(replaced),
        stuck=(*found.stuck, *stuck),
        notes=(*found.notes, *replaced.values()),
    )


def _names_torch(item: Distribution, markers: Mapping[str, str]) -> bool:
    """Whether the metadata accept only one release of torch."""
    found = (applicable(text, markers) for text in item.requires)
    return any(
        requirement is not None
        and canonicalize_name(requirement.name) == "torch"
        and any(part.operator in {"==", "==="} for part in requirement.specifier)
        for requirement in found
    )


def _build(
    item: Distribution,
    how: str,
    environment: Environment,
    builds_with: BuildInputs,
    *,
    same_cuda: bool,
) -> tuple[Rebuild, tuple[str, ...]] | str:
    """Return the build of a distribution with its missing requirements, or the reason against it."""
    told = f"{item.name} {item.version} is bound to the installed torch: {how}"
    try:
        step, needed = rebuild_plan.step(item.name, environment, builds_with)
    except NoSolution as error:
        return f"{told}, and no release of it names the new one; {error.cause or error.summary}"
    matching = builds_with.toolchain is not None and builds_with.toolchain.matching_home is not None
    # torch.utils.cpp_extension refuses an nvcc of another CUDA major version than torch's
    gpu_code = "CUDA_HOME" in step.variables or item.name in tables.extensions()
    if gpu_code and not (same_cuda and matching):
        return f"{told}, and to build it again takes the CUDA toolkit of the new torch"
    return step, needed
