"""What has to change when torch does: distributions that are bound to the torch that goes. Pure."""

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
    """How each distribution that is bound to torch follows it."""

    pins: tuple[str, ...] = ()
    """What has to be resolved besides: releases that name the new torch, and what builds need."""
    replaced: frozenset[str] = frozenset()
    """Names of those that another release takes the place of."""
    builds: tuple[Rebuild, ...] = ()
    """Those that are built again from their source."""
    stuck: tuple[str, ...] = ()
    """Those that cannot follow, each with the reason."""
    notes: tuple[str, ...] = ()


def following(
    environment: Environment,
    markers: Mapping[str, str],
    builds_with: BuildInputs,
    *,
    handled: Collection[str],
    same_cuda: bool,
) -> Dependents:
    """Return how what is bound to torch follows it, apart from what the playbook has `handled` already.

    One that names its torch in its metadata is resolved for the new one. Another one's wheels say nothing of
    torch, so that it is built again: with a toolkit as the new torch wants it only where CUDA stays (`same_cuda`).
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
            pins.append(item.name)
            continue
        made = _build(item, how, environment, builds_with, same_cuda=same_cuda)
        if isinstance(made, str):
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
    """Return `found` with what requires the releases that go: other releases of it are resolved beside the new ones.

    What did not come from an index is not looked for on one: its name there may be somebody else's. `moved` is
    settled otherwise.
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
    """Whether its metadata accepts one release of torch only."""
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
    """The build of a distribution with what it needs, or why there is none."""
    told = f"{item.name} {item.version} is bound to the installed torch: {how}"
    try:
        step, needed = rebuild_plan.step(item.name, environment, builds_with)
    except NoSolution as error:
        return f"{told}, and no release of it names the new one; {error.cause or error.summary}"
    matching = builds_with.toolchain is not None and builds_with.toolchain.matching_home is not None
    gpu_code = "CUDA_HOME" in step.variables or item.name in tables.extensions()
    if gpu_code and not (same_cuda and matching):
        return f"{told}, and to build it again takes the CUDA toolkit of the new torch"
    return step, needed
