"""Constraints that keep installers from undoing a repair. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from urllib.parse import quote

import msgspec
from packaging.utils import canonicalize_name

from envmedic.model.conda import CondaChange
from envmedic.model.facts import Environment
from envmedic.model.plan import CONSTRAINTS, Install, Pin, Plan, Purge, Rebuild, SetEnv, Step
from envmedic.planner.family import family_query
from envmedic.planner.identity import named

_VARIABLES = ("PIP_CONSTRAINT", "UV_CONSTRAINT")
_SPECIAL = re.compile(r"\s")


def keeping(plan: Plan, environment: Environment, *, everything: bool, constrained: Collection[str]) -> Plan:
    """Return `plan` with steps that constrain the versions that it installs.

    With `everything`, these are all distributions and conda packages that it changes, and the torch family that it
    was verified with; otherwise only the `constrained` ones, which earlier constraints would keep at another version.
    """
    distributions = {
        name: version for name, version in _distributions(plan, environment) if everything or name in constrained
    }
    packages = tuple(_packages(plan)) if everything else ()
    if not distributions and not packages:
        return plan
    pin = Pin(
        constraints=tuple(f"{name}=={distributions[name]}" for name in sorted(distributions)),
        conda=packages,
        keeps=True,
    )
    steps: tuple[Step, ...] = (*plan.steps, pin)
    variables = _variables(environment) if everything and distributions else {}
    if variables:
        steps += (SetEnv(variables=variables),)
    return named(msgspec.structs.replace(plan, steps=steps))


def _distributions(plan: Plan, environment: Environment) -> Iterator[tuple[str, str]]:
    """Name and version of each wheel to constrain: the changed distributions and the torch family."""
    gone: set[str] = set()
    for step in plan.steps:
        if isinstance(step, Purge):
            gone.update(step.names)
        if isinstance(step, CondaChange):
            # conda's own packages are pinned by match specs instead, which its solver reads
            # own
            gone.update(name for item in step.remove for name in item.distributions)
    if any(item.name in {*family_query.FAMILY, "pytorch"} for item in plan.changes):
        for item in environment.distributions:
            if item.name in family_query.FAMILY and item.name not in gone and item.owner != "conda":
                yield item.name, item.version
    for step in plan.steps:
        # later than the family above: `dict` keeps the last version, which is the new one
        if isinstance(step, Install):
            yield from ((canonicalize_name(item.name), item.version) for item in step.artifacts)
        if isinstance(step, Rebuild):
            yield step.distribution.name, step.distribution.version


def _packages(plan: Plan) -> Iterator[str]:
    """Exact match specs of the conda packages that were requested, or that contain the torch family."""
    for step in plan.steps:
        if not isinstance(step, CondaChange):
            continue
        # dependencies stay free, so that conda can still update them without a conflict with the pins
        asked = {re.split(r"[\s=<>!~\[]", text.rpartition("::")[2], maxsplit=1)[0] for text in step.specs}
        for item in step.install:
            if item.name in asked or not set(family_query.FAMILY).isdisjoint(item.distributions):
                yield f"{item.name} =={item.version} {item.build}"


def _variables(environment: Environment) -> dict[str, str]:
    """Return the variables by which pip and uv of an activated shell read the constraints, after those already set."""
    path = f"{environment.real_prefix}/{CONSTRAINTS}"
    # PIP_CONSTRAINT and UV_CONSTRAINT hold several paths, separated by spaces; a URL has its spaces encoded
    own = f"file://{quote(path)}" if _SPECIAL.search(path) else path
    kept = {item.name: item.value or "" for item in environment.variables}
    told = {name: kept.get(name, "").split() for name in _VARIABLES}
    return {name: " ".join([*words, own]) for name, words in told.items() if own not in words}
