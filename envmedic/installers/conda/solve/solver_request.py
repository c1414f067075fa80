"""Input of the solver: the installed packages to keep, the specs and the constraints."""

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
"""A build string that no package has: a constraint on it forces the removal of a package."""
_CYCLE = ("python", "pip")
"""conda adds pip to the dependencies of Python, and pip depends on Python."""


@dataclass(frozen=True)
class SolverRequest:
    """A request, with the installed and virtual packages to which it applies."""

    request: CondaRequest
    packages: tuple[CondaPackage, ...]
    virtual: tuple[Virtual, ...]
    pins: tuple[str, ...] = ()
    """Pins of the environment and of the user's configuration."""

    def gone(self, name: str) -> bool:
        """Whether the request removes the package."""
        return _any(name, self.request.remove) and name not in self.named

    def removable(self, name: str) -> bool:
        """Whether the request allows the removal of the package together with others."""
        return _any(name, self.request.removable) and name not in self.named

    def replaceable(self, name: str) -> bool:
        """Whether the package may change its version or build."""
        return name in self.named or _any(name, self.request.replaceable)

    @property
    def named(self) -> frozenset[str]:
        """Names in the specs. Raises InputError for one that cannot be read."""
        return frozenset(map(_name, self.request.specs))

    @property
    def kept(self) -> tuple[CondaPackage, ...]:
        """Packages that must stay, with version and build string."""
        loose = (self.gone, self.replaceable, self._may_go)
        return tuple(item for item in self.packages if not any(test(item.name) for test in loose))

    def specs(self) -> tuple[str, ...]:
        """Match specs of all packages that the solution must have."""
        # Kept packages are pinned records and specs as well: a pinned record alone may be left out of a solution.
        kept = (f"{item.name} =={item.version} {item.build}" for item in self.kept)
        free = (item.name for item in self.packages if self.replaceable(item.name) and item.name not in self.named)
        others = (name for name in free if not self.gone(name) and not self._may_go(name))
        return (*self.request.specs, *kept, *others)

    def _may_go(self, name: str) -> bool:
        """Whether the solver may remove it: it is removable, and depends on a removed package or another needs it."""
        needed = any(name in _needs(item) for item in self.packages)
        return self.removable(name) and (needed or name in self._of_what_goes())

    def _of_what_goes(self) -> frozenset[str]:
        """Packages that are removed, and all that depend on them, directly or not."""
        found = {item.name for item in self.packages if self.gone(item.name)}
        found |= {item.name for item in self.packages if self.removable(item.name) and item.name in self.request.remove}
        while True:
            # Grown level by level until nothing is added: dependents of dependents go too.
            more = {item.name for item in self.packages if not found.isdisjoint(_needs(item))} - found
            if not more:
                return frozenset(found)
            found |= more

    def constraints(self) -> tuple[str, ...]:
        """Limits on packages that apply if the solution has them: removed packages stay out, and pins hold.

        A package that the solver may remove keeps its build if it stays. A pin on a kept package has no effect, whether
        the package meets it or not.
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
        """Records of the packages to keep, and of those that the solver should prefer.

        Kept packages lose requirements that other kept packages do not meet: no change would be possible otherwise.
        With `tolerant` they lose every unmet requirement.
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
            except ValueError:  # a form that only the solver reads
                return True
            # A package outside of the kept ones may still change, so that its requirement can be met by the solution.
            outside = fixed is not None and name not in fixed and not name.startswith("__")
            return met or outside

        return msgspec.structs.replace(
            package,
            depends=tuple(spec for spec in package.depends if holds(spec, missing=False)),
            constrains=tuple(spec for spec in package.constrains if holds(spec, missing=True)),
        )


def document(package: CondaPackage) -> dict[str, Any]:
    """A record of `package` with the fields that a solver reads."""
    found: dict[str, Any] = {
        "name": package.name,
        "version": package.version,
        "build": package.build,
        "build_number": package.build_number,
        "depends": list(package.depends),
        "constrains": list(package.constrains),
        "channel": package.channel,
        # py-rattler requires it, and old records may lack it.
        "subdir": package.subdir or "linux-64",
        "fn": package.filename,
        "url": package.url or f"file:///unknown/{package.subdir}/{package.filename}",
        "track_features": " ".join(package.track_features),
    }
    optional = {"md5": package.md5, "sha256": package.sha256, "size": package.size_bytes, "noarch": package.noarch}
    return found | {key: value for key, value in optional.items() if value is not None}


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the glob `patterns` matches `name`."""
    return _any(name, tuple(patterns))


def _any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _needs(package: CondaPackage) -> frozenset[str]:
    """Names of its dependencies."""
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
