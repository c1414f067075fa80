"""What conda keeps: the packages that the specs in force need, directly or through others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from envmedic.conda_meta import specs
from envmedic.model.conda import CondaPackage


def needed(names: Iterable[str], packages: Iterable[CondaPackage]) -> frozenset[str]:
    """Names of the installed packages that are called so, or that those depend on, however far."""
    there = {item.name: item for item in packages}
    found: set[str] = set()
    ahead = [name for name in names if name in there]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += [needs for needs in _depends(there[name]) if needs in there]
    return frozenset(found)


def set_adrift(
    in_force: Mapping[str, str],
    before: Iterable[CondaPackage],
    wanted: Mapping[str, str],
    after: Iterable[CondaPackage],
) -> dict[str, str]:
    """A spec for each package that stays while all that needed it has gone: name → name.

    `in_force` and `wanted` are the specs before and after, by name. conda would take these packages away at its next
    removal of anything, though wheels may need them now.
    """
    after = tuple(after)
    names = {item.name for item in after}
    lost = needed(in_force, before) - needed(wanted, after)
    return {name: name for name in sorted(lost & names)}


def _depends(package: CondaPackage) -> Iterator[str]:
    return filter(None, map(_name, package.depends))


def _name(spec: str) -> str:
    """Empty for a form that only a solver knows."""
    try:
        return specs.name_of(spec)
    except ValueError:
        return ""
