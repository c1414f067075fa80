"""Checks of requirements against the present or planned distributions, by metadata alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.utils import canonicalize_name

from envmedic.compat.installed_requirements import Unmet, applicable, holds, markers, meets, parsed
from envmedic.model.facts import Environment
from envmedic.model.plan import Artifact

__all__ = ["Unmet", "applicable", "key", "markers", "meets", "newly_unmet", "unmet", "unmet_already"]


def unmet(
    environment: Environment,
    removed: Iterable[str],
    new: Iterable[Artifact],
    *,
    values: Mapping[str, str],
    others: Mapping[str, str] | None = None,
) -> tuple[Unmet, ...]:
    """Return the requirements of `new` wheels that (installed - removed + new) does not meet.

    `removed` are normalised names; `values` the marker variables (`markers`); `others` is what comes besides wheels,
    with its versions.
    """
    artifacts = tuple(new)
    gone = set(removed)
    # reversed: of several copies the first counts, which is the one that Python imports
    there = {item.name: item.version for item in reversed(environment.distributions) if item.name not in gone}
    there |= dict(others or {}) | {str(canonicalize_name(item.name)): item.version for item in artifacts}
    found = (_unmet(f"{item.name} {item.version}", text, there, values) for item in artifacts for text in item.requires)
    return tuple(item for item in found if item is not None)


def _unmet(name: str, text: str, there: Mapping[str, str], values: Mapping[str, str]) -> Unmet | None:
    requirement = applicable(text, values)
    if requirement is None:
        return None
    found = there.get(canonicalize_name(requirement.name))
    if found is not None and meets(requirement, found):
        return None
    return Unmet(distribution=name, requirement=f"{requirement.name}{requirement.specifier}", found=found)


def unmet_already(environment: Environment, new: Iterable[Artifact], *, values: Mapping[str, str]) -> frozenset[str]:
    """Return the unmet requirements of the installed distributions that `new` wheels replace, by `key`."""
    names = {str(canonicalize_name(item.name)) for item in new}
    there = {item.name: item.version for item in reversed(environment.distributions)}
    replaced = (item for item in environment.distributions if item.name in names)
    found = (_unmet(item.name, text, there, values) for item in replaced for text in item.requires)
    return frozenset(key(item) for item in found if item is not None)


def key(item: Unmet) -> str:
    """Identify an unmet requirement, regardless of the version of the distribution that has it."""
    return f"{item.distribution.partition(' ')[0]} {item.requirement} {item.found}"


def newly_unmet(
    environment: Environment, after: Mapping[str, str | None], *, values: Mapping[str, str]
) -> tuple[Unmet, ...]:
    """Return the requirements of unchanged distributions that are met now and would not be met afterwards.

    `after` gives the new version of each changed distribution, None for a removed one.
    """
    # of a distribution with several copies only what all of them meet counts as met: which one stays is open
    before: dict[str, list[str]] = {}
    for item in environment.distributions:
        before.setdefault(item.name, []).append(item.version)
    broken = []
    for item in environment.distributions:
        if item.name in after:
            continue
        for text in item.requires:
            requirement = parsed(text)
            name = canonicalize_name(requirement.name) if requirement else ""
            if requirement is None or name not in after or name not in before or not holds(requirement, values):
                continue
            new = after[name]
            # A requirement that is unmet today is not the plan's doing, and must not block the repair of something
            # else.
            met = all(meets(requirement, version) for version in before[name])
            if met and (new is None or not meets(requirement, new)):
                asked = f"{requirement.name}{requirement.specifier}"
                broken.append(Unmet(distribution=f"{item.name} {item.version}", requirement=asked, found=new))
    return tuple(broken)
