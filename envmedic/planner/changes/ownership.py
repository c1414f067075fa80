"""Owners of the distributions of a conda prefix: conda, an installer of wheels, or both."""

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
"""Owner of a distribution. Both: a wheel was installed over the files of a conda package."""


class Owners:
    """The owners of an environment's distributions, by conda's records and the metadata on disk."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.conda = environment.conda or CondaEnvironment()

    @cached_property
    def _packages(self) -> dict[str, CondaPackage]:
        """Conda packages by the distributions in them, and by those installed over them under another name."""
        named = {item.name: item for item in self.conda.packages}
        # conda's `pytorch` may be overwritten by a wheel `torch`; files, not names, tell
        over = {it.distribution: named[it.package] for it in self.conda.overlaid if it.package in named}
        return over | {name: item for item in self.conda.packages for name in item.distributions}

    def over(self, package: str) -> tuple[str, ...]:
        """Distributions installed over a conda package, under any name."""
        return tuple(item.distribution for item in self.conda.overlaid if item.package == package)

    def replaced(self, name: str) -> bool:
        """Whether the wheel of that distribution replaced every file of conda's copy."""
        over = [item for item in self.conda.overlaid if item.distribution == name]
        return bool(over) and not any(item.mixed or name in self.environment.duplicates for item in over)

    @cached_property
    def _over(self) -> frozenset[str]:
        """Metadata paths of the wheels installed over conda packages."""
        return frozenset(item.metadata_path for item in self.conda.overlaid)

    def package(self, name: str) -> CondaPackage | None:
        """Return the conda package of a distribution: by its record, else by the data."""
        found = self._packages.get(name)
        if found is not None or name not in package_names():
            return found
        # some conda packages install no Python metadata, so that their record shows no distribution
        known = self.conda.package(package_names()[name])
        return known if known is not None and not known.distributions else None

    @property
    def wheels_by_name(self) -> frozenset[str]:
        """Names of the distributions with a copy from an installer of wheels."""
        items = self.environment.distributions
        return frozenset(item.name for item in items if not item.outside_prefix and not self.is_condas(item))

    def is_condas(self, item: Distribution) -> bool:
        """Whether conda installed this copy."""
        # overlaid metadata is a wheel's, whatever its INSTALLER says: the comparison of files found it
        if item.owner != "conda" or item.metadata_path in self._over:
            return False
        return item.name not in self.environment.duplicates or item.metadata_path == self._own(item.name)

    def _own(self, name: str) -> str | None:
        """Of several metadata with conda as installer, those of the installed package: by version, else the first."""
        copies = [item for item in self.environment.distributions if item.name == name and item.owner == "conda"]
        package = self._packages.get(name)
        # an interrupted conda update leaves the metadata of the old version beside the new
        fitting = [item for item in copies if package is not None and item.public == package.version]
        return next((item.metadata_path for item in (*fitting, *copies)), None)

    def wheels(self, name: str) -> tuple[Distribution, ...]:
        """Return the copies inside the prefix that conda did not install."""
        items = self.environment.distributions
        return tuple(it for it in items if it.name == name and not it.outside_prefix and not self.is_condas(it))

    def kind(self, name: str) -> Kind:
        """Return the owner of a distribution."""
        by_conda, by_wheel = self.package(name) is not None, bool(self.wheels(name))
        if by_conda and by_wheel:
            return "both"
        if by_conda:
            return "conda"
        return "wheel" if by_wheel else "none"


def only_wheels(environment: Environment) -> Environment:
    """Return `environment` without conda's copies, which an installer of wheels must not remove."""
    owners = Owners(environment)
    kept = tuple(item for item in environment.distributions if not owners.is_condas(item))
    return msgspec.structs.replace(environment, distributions=kept)


def with_single_owners(environment: Environment, *, to_conda: Iterable[str], to_wheels: Iterable[str]) -> Environment:
    """Return `environment` as it would be if each of these distributions had only the named owner.

    A removed wheel uncovers the conda package under it, in the version of its record.
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
        # libraries of a removed wheel were observed in files that conda's reinstallation replaces
        libraries=tuple(item for item in environment.libraries if item.distribution not in condas),
    )


def _uncovered(name: str, over: str, owners: Owners) -> Distribution | None:
    """Return a conda package's distribution, under the wheel of `over`; without requirements, which conda checks."""
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
    """Return the build of conda's torch by the build string, since the files on disk are the wheel's."""
    package = owners.package("torch")
    if package is None:
        return owners.environment.torch
    variant = channels.variant_of(package)
    cuda = versions.variant_cuda(variant) if variant is not None else None
    return TorchBuild(version=package.version, cuda=cuda, variant=variant)
