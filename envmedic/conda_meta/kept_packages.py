"""Reachability of conda packages from the specs in force: conda removes the packages that no spec needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from envmedic.conda_meta import specs
from envmedic.model.conda import CondaPackage


def required_names(names: Iterable[str], packages: Iterable[CondaPackage]) -> frozenset[str]:
    """Return the names of the installed packages among `names`, with all their direct and indirect dependencies."""
    installed = {item.name: item for item in packages}
    found: set[str] = set()
    # a worklist, since packages may depend on each other in circles
    pending = [name for name in names if name in installed]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += [needs for needs in _depends(installed[name]) if needs in installed]
    return frozenset(found)


def orphaned_specs(
    in_force: Mapping[str, str],
    before: Iterable[CondaPackage],
    wanted: Mapping[str, str],
    after: Iterable[CondaPackage],
) -> dict[str, str]:
    """Return a spec (name → name) for each installed package whose dependents were all removed.

    `in_force` and `wanted` are the specs before and after, by name. Without a spec, conda's next removal of any
    package would remove these packages too, though wheels may need them now.
    """
    after = tuple(after)
    names = {item.name for item in after}
    # packages that no spec needed before either are left out: they were not protected, and stay so
    lost = required_names(in_force, before) - required_names(wanted, after)
    return {name: name for name in sorted(lost & names)}


def _depends(package: CondaPackage) -> Iterator[str]:
    return filter(None, map(_name, package.depends))


def _name(spec: str) -> str:
    """Return the name in a dependency; empty for a form that only a solver understands."""
    try:
        return specs.name_of(spec)
    except ValueError:
        return ""
