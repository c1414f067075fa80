"""Conda's part of an environment: packages, requests to a solver, and the proposed change.

Words follow conda's package metadata: https://docs.conda.io/projects/conda-build/en/stable/resources/package-spec.html
and https://docs.conda.io/projects/conda/en/stable/dev-guide/api/conda/models/records/.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from envmedic.model.base import Model
from envmedic.model.registries import installers
from envmedic.model.registries.registry import complete

CondaTool = Literal["conda", "mamba", "micromamba", "pixi", "conda-workspaces", "unknown"]
CondaExecutor = Literal["rattler", "conda"]
_EXECUTORS = complete(
    get_args(CondaExecutor),
    installers.OF_CONDA,
    stated="`CondaExecutor` in envmedic/model/conda.py",
    add="what people call it to `OF_CONDA` in envmedic/model/registries/installers.py",
)


class CondaPackage(Model, frozen=True, kw_only=True):
    """An installed conda package, by its record in ``conda-meta``."""

    name: str
    """As conda spells it, which need not be the name of a Python distribution: ``pytorch`` brings ``torch``."""
    version: str
    build: str
    """The build string: ``py3.11_cuda12.1_cudnn8.9.2_0``."""
    build_number: int = 0
    channel: str = ""
    """URL of the channel without subdirectory and without credentials, or its name where the record has no URL."""
    subdir: str = ""
    """``linux-64``, ``noarch``, …"""
    filename: str = ""
    """Of the package: ``pytorch-2.3.1-py3.11_cuda12.1_cudnn8.9.2_0.tar.bz2``."""
    url: str = ""
    """Where it came from, without credentials."""
    md5: str | None = None
    sha256: str | None = None
    size_bytes: int | None = None
    """Of the package file."""
    noarch: Literal["python", "generic"] | None = None
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    track_features: tuple[str, ...] = ()
    requested: tuple[str, ...] = ()
    """The user's specs for it, as far as the record states them; empty for a dependency."""
    distributions: tuple[str, ...] = ()
    """Normalised names of the Python distributions whose metadata is among its files."""
    prefixed: bool = False
    """Whether the path of the environment was written into files of it when it was installed."""
    record: str = ""
    """Its file, relative to the prefix: ``conda-meta/pytorch-2.3.1-….json``."""


# Neither installer notices: pip removes what RECORD lists, conda what its record lists, and each leaves the rest of
# the other behind.
class CondaOverlay(Model, frozen=True, kw_only=True):
    """A conda package and a distribution that pip or uv put over it: two owners of the same import packages."""

    package: str
    """By conda's name."""
    distribution: str
    """Normalised name; another one than the package brings where they only share files."""
    version: str
    """Of the distribution."""
    metadata_path: str
    """Of the distribution, relative to the prefix."""
    same: bool
    """Whether the package brings that distribution by its own record."""
    shared: int = 0
    """Files that both list."""
    left: int = 0
    """Modules and libraries that conda alone lists in the import packages of both, and that are there still."""
    condas: int = 0
    """Of the modules and libraries that both list with different content, those that hold conda's."""

    @property
    def mixed(self) -> bool:
        """Whether code of both is on disk, so that imports mix the two."""
        return bool(self.left or self.condas)


class CondaEnvironment(Model, frozen=True, kw_only=True):
    """What ``conda-meta`` says of a conda prefix."""

    packages: tuple[CondaPackage, ...] = ()
    """By name."""
    damaged: tuple[str, ...] = ()
    """Records that cannot be read, relative to the prefix."""
    requested: tuple[str, ...] = ()
    """Specs in force by ``conda-meta/history``, as conda replays it; the removed and overridden ones apart."""
    history: Literal["present", "empty", "missing"] = "missing"
    pinned: tuple[str, ...] = ()
    """Specs in ``conda-meta/pinned``."""
    made_by: CondaTool = "unknown"
    """The tool that owns it, by what it left in ``conda-meta``."""
    overlaid: tuple[CondaOverlay, ...] = ()
    """Packages over which pip or uv put a distribution."""
    unowned: int | None = None
    """Files in its ``site-packages`` that no conda record and no wheel's RECORD lists; None when not looked at."""

    def package(self, name: str) -> CondaPackage | None:
        """The installed package of that name, or None."""
        return next((item for item in self.packages if item.name == name), None)

    def owner_of(self, distribution: str) -> CondaPackage | None:
        """The package that brings the Python distribution of that normalised name, or None."""
        return next((item for item in self.packages if distribution in item.distributions), None)


class CondaArtifact(Model, frozen=True, kw_only=True):
    """One exact conda package."""

    name: str
    version: str
    build: str
    channel: str
    """URL of the channel, without credentials."""
    subdir: str
    filename: str
    url: str
    """Without credentials."""
    sha256: str | None = None
    md5: str | None = None
    size_bytes: int | None = None
    distributions: tuple[str, ...] = ()
    """Python distributions that it is known to bring, by normalised name."""
    # Kept whole: records have fields that envmedic does not read, and conda expects them later.
    metadata: dict[str, Any] = {}
    """Its entry in the channel's repodata, from which an installer makes its record."""


class CondaReference(Model, frozen=True, kw_only=True):
    """An installed conda package to be removed or replaced."""

    name: str
    version: str
    build: str
    record: str
    """Its file, relative to the prefix."""
    distributions: tuple[str, ...] = ()
    """Python distributions that go with it, by normalised name."""


# Exact by default: a solver that is free to update would change hundreds of packages for one repair.
class CondaRequest(Model, frozen=True, kw_only=True):
    """What a solver is asked. Installed packages that are not named here stay as they are, to the build string."""

    specs: tuple[str, ...] = ()
    """Match specs of what must be there afterwards: ``pytorch=2.3.1``, ``pytorch-cuda=12.1``."""
    remove: tuple[str, ...] = ()
    """Packages that must not be there afterwards; what depends on them goes only where `removable` has it."""
    removable: tuple[str, ...] = ()
    """Names or patterns of what may go with them."""
    replaceable: tuple[str, ...] = ()
    """Names or patterns of installed packages that may become another version or build."""
    reinstall: tuple[str, ...] = ()
    """Installed packages to be put in place again, the same to the build string, since files of theirs are damaged."""
    channels: tuple[str, ...] = ()
    """Channels asked before the user's own."""
    lifted: tuple[str, ...] = ()
    """The user's pins, as they are written, that do not bind."""
    offline: bool = False


class CondaChange(Model, frozen=True, kw_only=True, tag="conda"):
    """Exact conda packages that go and come, in one step; the rest of the environment's packages stay."""

    remove: tuple[CondaReference, ...] = ()
    """Removed packages, with the replaced and reinstalled ones."""
    install: tuple[CondaArtifact, ...] = ()
    """New packages, with those that replace others."""
    specs: tuple[str, ...] = ()
    """What the revision in ``conda-meta/history`` says was asked for: these override older specs of the same names."""
    # conda replays the history to learn the user's specs: without this, the next install would ask for a removed
    # package again.
    remove_specs: tuple[str, ...] = ()
    """Names whose older specs the revision takes back."""
    executor: CondaExecutor = "rattler"
    """What carries it out: py-rattler in a helper process, or the user's own conda."""

    def describe(self) -> str:
        """One line for people."""
        # with builds: a package of the same version in another build is a change
        old = {item.name: (item.version, item.build) for item in self.remove}
        new = {item.name: (item.version, item.build) for item in self.install}
        kinds = {
            "remove": [f"{name} {old[name][0]}" for name in old if name not in new],
            "put in place again": [f"{name} {new[name][0]}" for name in new if old.get(name) == new[name]],
            "change": [_changed(name, old[name], new[name]) for name in new if old.get(name, new[name]) != new[name]],
            "install": [" ".join((name, *new[name])) for name in new if name not in old],
        }
        parts = [f"{verb} {', '.join(items)}" for verb, items in kinds.items() if items]
        return f"conda packages, by {_EXECUTORS[self.executor]}: " + "; ".join(parts)


def _changed(name: str, old: tuple[str, str], new: tuple[str, str]) -> str:
    """The old and new version of a package, with builds, since the version alone may be the same."""
    return f"{name} {' '.join(old)} -> {' '.join(new)}"
