"""Closure of a removal of conda packages: their dependents, and dependencies of nothing else. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from envmedic.compat.conda_tables import family_packages
from envmedic.compat.torch_family import conda_families as channels
from envmedic.conda_meta import specs
from envmedic.model.conda import CondaEnvironment, CondaPackage


@dataclass(frozen=True)
class Leaving:
    """Conda packages that are removed together."""

    packages: tuple[str, ...] = ()
    moved: tuple[CondaPackage, ...] = ()
    """Dependents among them that contain distributions, to be replaced by wheels."""
    stuck: tuple[str, ...] = ()
    """Reasons against the removal: dependents without a wheel."""


def depends_on(package: CondaPackage) -> frozenset[str]:
    """Names of the packages that a package depends on."""
    return frozenset(name for text in package.depends if (name := _name(text)) is not None)


def _name(text: str) -> str | None:
    try:
        return specs.name_of(text)
    except ValueError:  # a spec that conda would refuse binds no package
        return None


def leaving(conda: CondaEnvironment, names: Iterable[str], *, move: bool) -> Leaving:
    """Return the removal of the packages `names` with their dependents and the CUDA packages that only they need.

    With `move`, dependents that contain distributions become wheels of the same version; others block the removal.
    """
    gone = dict.fromkeys(name for name in names if conda.package(name) is not None)
    moved: list[CondaPackage] = []
    stuck: list[str] = []
    while True:
        held = [item for item in conda.packages if item.name not in gone and depends_on(item) & gone.keys()]
        if not held:
            break
        for item in held:
            # stuck dependents are added as well, so that all reasons are reported and not only the first
            gone[item.name] = None
            if item.name in family_packages() or channels.is_library(item.name):
                continue
            if move and item.distributions:
                moved.append(item)
            else:
                asked = ", ".join(sorted(depends_on(item) & gone.keys()))
                stuck.append(f"conda's {item.name} {item.version} depends on {asked}")
    unneeded = _unneeded(conda, gone)
    return Leaving(packages=(*gone, *unneeded), moved=tuple(moved), stuck=tuple(stuck))


def _unneeded(conda: CondaEnvironment, gone: Iterable[str]) -> tuple[str, ...]:
    """Return the CUDA packages that were not requested and that no remaining package depends on."""
    asked = requested(conda)
    return orphans(
        conda, gone, lambda item: item.name not in asked and not item.requested and channels.is_library(item.name)
    )


def orphans(conda: CondaEnvironment, gone: Iterable[str], may_go: Callable[[CondaPackage], bool]) -> tuple[str, ...]:
    """Return the packages that `may_go` and that no remaining package depends on after the removal of `gone`."""
    left = {item.name: item for item in conda.packages}
    for name in gone:
        left.pop(name, None)
    found: list[str] = []
    while True:
        # to a fixed point: the removal of one orphan can make orphans of its own dependencies
        needed = {name for item in left.values() for name in depends_on(item)}
        useless = [name for name, item in left.items() if name not in needed and may_go(item)]
        if not useless:
            return tuple(found)
        found += useless
        for name in useless:
            del left[name]


def requested(conda: CondaEnvironment) -> frozenset[str]:
    """Names of the packages that the user requested from conda."""
    return frozenset(name for text in conda.requested if (name := _name(text)) is not None)


def siblings(conda: CondaEnvironment, names: Iterable[str]) -> tuple[str, ...]:
    """Return `names` and the installed packages bound to them by exact versions, in either direction, transitively."""
    edges: dict[str, set[str]] = {}
    for item in conda.packages:
        for text in item.depends:
            name = _exact(text)
            if name is not None and conda.package(name) is not None:
                edges.setdefault(item.name, set()).add(name)
                # both directions: the solver can move neither end of an exact dependency alone
                edges.setdefault(name, set()).add(item.name)
    found = dict.fromkeys(names)
    todo = list(found)
    while todo:
        for name in sorted(edges.get(todo.pop(), ())):
            if name not in found and name not in NEVER:
                found[name] = None
                todo.append(name)
    return tuple(found)


def _exact(text: str) -> str | None:
    """Return the name of a dependency on one exact version or build, None for another dependency."""
    try:
        return specs.name_of(text) if specs.is_exact(text) else None
    except ValueError:
        return None


NEVER = frozenset({"python", "python_abi"})
"""Packages that a repair never replaces: every compiled distribution is built for the Python of the environment."""
