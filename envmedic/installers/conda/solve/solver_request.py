"""What the solver is asked: which installed packages stay as they are, and what else must hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from envmedic.conda_meta import specs
from envmedic.errors import InputError
from envmedic.installers.conda.configuration import spec_matching
from envmedic.installers.conda.solve.virtual_packages import Virtual
from envmedic.model.conda import CondaPackage, CondaRequest

NEVER = "envmedic-must-not-be-there"
"""A build that no package has: how a solver is told that a package must go."""
_CYCLE = ("python", "pip")
"""conda adds pip to what Python needs, which needs Python."""


@dataclass(frozen=True)
class SolverRequest:
    """A request, with the packages that it is about."""

    request: CondaRequest
    packages: tuple[CondaPackage, ...]
    virtual: tuple[Virtual, ...]
    pins: tuple[str, ...] = ()
    """Of the environment and of the user's configuration."""

    def gone(self, name: str) -> bool:
        """Whether the package must not be there afterwards."""
        return _any(name, self.request.remove) and name not in self.named

    def removable(self, name: str) -> bool:
        """Whether it may go with those."""
        return _any(name, self.request.removable) and name not in self.named

    def replaceable(self, name: str) -> bool:
        """Whether it may become another version or build."""
        return name in self.named or _any(name, self.request.replaceable)

    @property
    def named(self) -> frozenset[str]:
        """Names in the specs. Raises InputError for one that cannot be read."""
        return frozenset(map(_name, self.request.specs))

    @property
    def kept(self) -> tuple[CondaPackage, ...]:
        """Packages that stay as they are, to the build string."""
        loose = (self.gone, self.replaceable, self._may_go)
        return tuple(item for item in self.packages if not any(test(item.name) for test in loose))

    def specs(self) -> tuple[str, ...]:
        """Match specs of all that must be there."""
        kept = (f"{item.name} =={item.version} {item.build}" for item in self.kept)
        others = (item.name for item in self.packages if self._stays_somehow(item.name))
        return (*self.request.specs, *kept, *others)

    def _stays_somehow(self, name: str) -> bool:
        free = self.replaceable(name) and name not in self.named
        return free and not self.gone(name) and not self._may_go(name)

    def _may_go(self, name: str) -> bool:
        """Whether it is left to the solver: what is removable and on nobody's behalf here is not."""
        return self.removable(name) and (name in self._of_what_goes() or bool(self._dependents(name)))

    def _dependents(self, name: str) -> list[str]:
        return [item.name for item in self.packages if name in _needs(item)]

    def _of_what_goes(self) -> frozenset[str]:
        """What depends on a package that goes, or on one that may then go, and so on."""
        found = {item.name for item in self.packages if self.gone(item.name)}
        found |= {item.name for item in self.packages if self.removable(item.name) and item.name in self.request.remove}
        while True:
            more = {item.name for item in self.packages if not found.isdisjoint(_needs(item))} - found
            if not more:
                return frozenset(found)
            found |= more

    def constraints(self) -> tuple[str, ...]:
        """What must hold of packages, if they are there: no package that goes comes back, and pins are answered.

        What may go stays as it is if it stays.

        A pin on a package that stays as it is changes nothing, whether the package answers to it or not.
        """
        kept = {item.name for item in self.kept}
        plain = (name for name in self.request.remove if "*" not in name and name not in self.named)
        gone = dict.fromkeys([*plain, *(item.name for item in self.packages if self.gone(item.name))])
        as_it_is = (item for item in self.packages if self._may_go(item.name) and not self.replaceable(item.name))
        return (
            *(f"{name} * {NEVER}" for name in gone),
            *(f"{item.name} =={item.version} {item.build}" for item in as_it_is if item.name not in gone),
            *(pin for pin in self.pins if _pin_name(pin) not in kept),
        )

    def documents(self, *, tolerant: bool = False) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The packages that stay as they are, and those that had better stay, as records.

        Of what stays, requirements that are unmet by what stays are left out: no change could be made else. The
        `tolerant` leave out all that are unmet now.
        """
        kept = self.kept
        fixed = {item.name for item in kept} | {name for name, _, _ in self.virtual}
        stay = [self._relaxed(item, None if tolerant else fixed) for item in kept]
        others = [item for item in self.packages if item not in kept and not self.gone(item.name)]
        return [document(item) for item in stay], [document(item) for item in others]

    def _relaxed(self, package: CondaPackage, fixed: set[str] | None) -> CondaPackage:
        present = {item.name: item for item in (*self.packages, *map(_as_package, self.virtual))}

        def holds(spec: str, *, missing: bool) -> bool:
            try:
                name = specs.name_of(spec)
                other = present.get(name)
                met = missing if other is None else spec_matching.matches(spec, other)
            except ValueError:  # a form that only the solver knows
                return True
            outside = fixed is not None and name not in fixed and not name.startswith("__")
            return met or outside

        return msgspec.structs.replace(
            package,
            depends=tuple(spec for spec in package.depends if holds(spec, missing=False)),
            constrains=tuple(spec for spec in package.constrains if holds(spec, missing=True)),
        )


def document(package: CondaPackage) -> dict[str, Any]:
    """A record of `package` with what a solver looks at."""
    found: dict[str, Any] = {
        "name": package.name,
        "version": package.version,
        "build": package.build,
        "build_number": package.build_number,
        "depends": list(package.depends),
        "constrains": list(package.constrains),
        "channel": package.channel,
        "subdir": package.subdir or "linux-64",
        "fn": package.filename,
        "url": package.url or f"file:///unknown/{package.subdir}/{package.filename}",
        "track_features": " ".join(package.track_features),
    }
    optional = {"md5": package.md5, "sha256": package.sha256, "size": package.size_bytes, "noarch": package.noarch}
    return found | {key: value for key, value in optional.items() if value is not None}


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of `patterns` is of that name."""
    return _any(name, tuple(patterns))


def _any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _needs(package: CondaPackage) -> frozenset[str]:
    """Names of what it depends on."""
    found: Callable[[str], str] = _plain_name
    names = {found(spec) for spec in package.depends}
    return frozenset(names - {_CYCLE[1]} if package.name == _CYCLE[0] else names)


def _plain_name(spec: str) -> str:
    try:
        return specs.name_of(spec)
    except ValueError:
        return spec


def _name(spec: str) -> str:
    try:
        return specs.name_of(spec)
    except ValueError as error:
        raise InputError(f"{spec!r} is no spec of a conda package", cause=str(error)) from error


def _pin_name(pin: str) -> str:
    try:
        return specs.name_of(pin)
    except ValueError as error:
        raise InputError(
            f"The pin {pin!r} cannot be read",
            cause=str(error),
            hint="Correct it in conda-meta/pinned of the environment, or in pinned_packages of conda's configuration",
        ) from error


def _as_package(virtual: Virtual) -> CondaPackage:
    name, version, build = virtual
    return CondaPackage(name=name, version=version, build=build)
