"""Who owns what of a conda prefix: conda, an installer of wheels, or both at once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Literal

import msgspec

from envmedic.compat import versions
from envmedic.compat.conda_tables import package_names
from envmedic.compat.torch_family import conda_families as channels
from envmedic.model.conda import CondaEnvironment, CondaPackage
from envmedic.model.facts import Distribution, Environment, Origin, TorchBuild

Kind = Literal["conda", "wheel", "both", "none"]
"""Whose a distribution is. Both: a wheel was installed over what a conda package brought."""


class Owners:
    """The owners of an environment's distributions, by conda's records and the metadata on disk."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.conda = environment.conda or CondaEnvironment()

    @cached_property
    def _packages(self) -> dict[str, CondaPackage]:
        """By distribution: of what conda brings, and of what lies over it under another name."""
        named = {item.name: item for item in self.conda.packages}
        over = {it.distribution: named[it.package] for it in self.conda.overlaid if it.package in named}
        return over | {name: item for item in self.conda.packages for name in item.distributions}

    def over(self, package: str) -> tuple[str, ...]:
        """Distributions that lie over a conda package, under whatever name."""
        return tuple(item.distribution for item in self.conda.overlaid if item.package == package)

    def replaced(self, name: str) -> bool:
        """Whether nothing of conda's copy is left under the wheel of that distribution."""
        over = [item for item in self.conda.overlaid if item.distribution == name]
        return bool(over) and not any(item.mixed or name in self.environment.duplicates for item in over)

    @cached_property
    def _over(self) -> frozenset[str]:
        """Metadata of the wheels that lie over conda's packages."""
        return frozenset(item.metadata_path for item in self.conda.overlaid)

    def package(self, name: str) -> CondaPackage | None:
        """The conda package that brings a distribution: as its record says, or as the data know it."""
        found = self._packages.get(name)
        if found is not None or name not in package_names():
            return found
        known = self.conda.package(package_names()[name])
        return known if known is not None and not known.distributions else None

    @property
    def wheels_by_name(self) -> frozenset[str]:
        """Names of the distributions that have a copy of an installer of wheels."""
        items = self.environment.distributions
        return frozenset(item.name for item in items if not item.outside_prefix and not self.is_condas(item))

    def is_condas(self, item: Distribution) -> bool:
        """Whether a copy is the one that conda put there."""
        if item.owner != "conda" or item.metadata_path in self._over:
            return False
        return item.name not in self.environment.duplicates or item.metadata_path == self._own(item.name)

    def _own(self, name: str) -> str | None:
        """Of several metadata that say to be conda's, those of the installed package: by its version, else the first."""
        copies = [item for item in self.environment.distributions if item.name == name and item.owner == "conda"]
        package = self._packages.get(name)
        fitting = [item for item in copies if package is not None and item.public == package.version]
        return next((item.metadata_path for item in (*fitting, *copies)), None)

    def wheels(self, name: str) -> tuple[Distribution, ...]:
        """The copies inside the prefix that conda did not put there."""
        items = self.environment.distributions
        return tuple(it for it in items if it.name == name and not it.outside_prefix and not self.is_condas(it))

    def kind(self, name: str) -> Kind:
        """Whose a distribution is."""
        by_conda, by_wheel = self.package(name) is not None, bool(self.wheels(name))
        if by_conda and by_wheel:
            return "both"
        if by_conda:
            return "conda"
        return "wheel" if by_wheel else "none"


def only_wheels(environment: Environment) -> Environment:
    """Return `environment` without the copies that conda put there: what an installer of wheels can take away."""
    owners = Owners(environment)
    kept = tuple(item for item in environment.distributions if not owners.is_condas(item))
    return msgspec.structs.replace(environment, distributions=kept)


def settled(environment: Environment, *, to_conda: Iterable[str], to_wheels: Iterable[str]) -> Environment:
    """Return `environment` as it would be where each of these distributions has the one owner named.

    A wheel that goes uncovers the conda package under it, in the version of its record.
    """
    owners, condas, wheels = Owners(environment), set(to_conda), set(to_wheels)
    kept = [
        item
        for item in environment.distributions
        if not (item.name in condas and not owners.is_condas(item))
        and not (item.name in wheels and owners.is_condas(item) and owners.wheels(item.name))
    ]
    shown = {item.name for item in kept}
    under = {
        it: name for name in sorted(condas) if (item := owners.package(name)) for it in item.distributions or (name,)
    }
    uncovered = [_uncovered(name, covering, owners) for name, covering in under.items() if name not in shown]
    changed = condas | wheels
    return msgspec.structs.replace(
        environment,
        distributions=(*kept, *(item for item in uncovered if item is not None)),
        duplicates=tuple(name for name in environment.duplicates if name not in changed),
        torch=_torch(owners) if "torch" in condas else environment.torch,
        companions=tuple(item for item in environment.companions if item.name not in condas),
        libraries=tuple(item for item in environment.libraries if item.distribution not in condas),
    )


def _uncovered(name: str, over: str, owners: Owners) -> Distribution | None:
    """A distribution as its conda package brings it, under the wheel of `over`; its dependencies conda knows."""
    package = owners.package(name)
    if package is None:
        return None
    covering = owners.wheels(over)
    return Distribution(
        name=name,
        version=package.version,
        metadata_path=package.record,
        site=covering[0].site if covering else "",
        owner="conda",
        origin=Origin(kind="conda"),
        import_names=covering[0].import_names if covering else (),
        size_bytes=package.size_bytes or 0,
    )


def _torch(owners: Owners) -> TorchBuild | None:
    """The build of torch that conda's package is; by its build string."""
    package = owners.package("torch")
    if package is None:
        return owners.environment.torch
    variant = channels.variant_of(package)
    cuda = versions.variant_cuda(variant) if variant is not None else None
    return TorchBuild(version=package.version, cuda=cuda, variant=variant)
