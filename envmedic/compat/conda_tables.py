"""Tables of the conda channels' packages and builds of the torch family, as frozen rows, decoded on first use."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import msgspec

from envmedic.compat import tables
from envmedic.model.base import Model

FlavourName = Literal["pytorch", "conda-forge", "defaults"]


class Selector(Model, frozen=True, kw_only=True):
    """The package that chooses the CUDA version of torch releases from `first` to `last`."""

    first: str
    last: str | None
    """None for no upper limit."""
    cuda: str
    """Match spec with ``{cuda}`` in it."""
    cpu: str | None


class Flavour(Model, frozen=True, kw_only=True):
    """The torch family of one conda channel."""

    flavour: FlavourName
    channel: str
    """Its last component, in any mirror."""
    build: str
    """Regular expression of torch's build strings; the group `cuda` is ``12.1``, `digits` is ``121``."""
    cuda_build: str
    """Pattern of build strings with ``{cuda}`` or ``{digits}`` in it."""
    cpu_build: str
    selectors: tuple[Selector, ...]
    channels: tuple[str, ...]
    """Channels that together contain the whole family, beside those that the user configured."""
    packages: tuple[str, ...]
    """The family and the packages that choose its build, which change together."""
    last: str | None
    """The last torch of the channel, None for an active channel."""
    ended: str | None
    """Source of the announcement that the channel ended."""
    source: tuple[str, ...]


class Builds(Model, frozen=True, kw_only=True):
    """CUDA versions of a torch release in a flavour, beside the CPU build."""

    flavour: FlavourName
    torch: str
    cuda: tuple[str, ...]
    source: tuple[str, ...]


class CompanionPackages(Model, frozen=True, kw_only=True):
    """Patterns of packages that torch depends on."""

    what: str
    patterns: tuple[str, ...]
    source: tuple[str, ...]


class Name(Model, frozen=True, kw_only=True):
    """A Python distribution whose conda package has another name, or no Python metadata."""

    distribution: str
    package: str
    source: tuple[str, ...]


class CondaTables(Model, frozen=True, kw_only=True):
    """``conda_packages.json``."""

    flavours: tuple[Flavour, ...]
    builds: tuple[Builds, ...]
    libraries: tuple[CompanionPackages, ...]
    names: tuple[Name, ...]


@lru_cache(maxsize=1)
def conda_tables() -> CondaTables:
    """Flavours, builds, libraries and names."""
    return msgspec.json.decode(tables.read_data_file("conda_packages.json"), type=CondaTables)


@lru_cache(maxsize=1)
def package_names() -> dict[str, str]:
    """Conda packages by normalised distribution name, where names differ or the package has no Python metadata."""
    return {row.distribution: row.package for row in conda_tables().names}


@lru_cache(maxsize=1)
def distribution_names() -> dict[str, str]:
    """Distributions by conda package; the first of the table for a package with several distributions."""
    # reversed: the last entry of a dict comprehension counts, and the table has the main distribution first
    return {row.package: row.distribution for row in reversed(conda_tables().names)}


@lru_cache(maxsize=1)
def library_patterns() -> tuple[str, ...]:
    """Names and patterns of CUDA packages that torch depends on."""
    return tuple(pattern for row in conda_tables().libraries for pattern in row.patterns)


@lru_cache(maxsize=1)
def family_packages() -> frozenset[str]:
    """Names of the family's packages in every flavour, with those that choose a build."""
    return frozenset(name for row in conda_tables().flavours for name in row.packages)
