"""Locks: every package of an environment with exact version, origin and hashes.

One value for all formats; `envmedic.locks` writes and reads them. A lock records an environment; it solves nothing.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from envmedic.model.base import Model

LOCK_SCHEMA: Final = "envmedic.lock/1"

# The names are here and the rest of each format is in `locks`, which the model must not import.
LockFormatName = Literal["conda-lock", "pylock", "requirements", "environment", "dockerfile"]
LOCK_FORMAT_NAMES: Final[tuple[LockFormatName, ...]] = get_args(LockFormatName)
"""In the order of choice; `envmedic.locks.formats` describes each."""
LockedKind = Literal["wheel", "sdist", "conda", "archive", "vcs", "directory", "editable", "unknown"]


class LockedPackage(Model, frozen=True, kw_only=True):
    """One package of the environment."""

    manager: Literal["conda", "pip"]
    name: str
    """Normalised for pip, as conda spells it for conda."""
    version: str
    kind: LockedKind
    url: str | None = None
    """Of the file, the repository or the directory, without credentials; None where it is not known."""
    filename: str | None = None
    sha256: str | None = None
    md5: str | None = None
    size_bytes: int | None = None
    requires: tuple[str, ...] = ()
    """Requirements (pip) or match specs (conda), as its metadata has them."""
    build: str | None = None
    """Build string of a conda package."""
    channel: str | None = None
    """Channel of a conda package, without credentials."""
    subdir: str | None = None
    """Of a conda package: ``linux-64``, ``noarch``."""
    index: str | None = None
    """Index of a wheel, without credentials; None where it is the default one or not known."""
    revision: str | None = None
    """Commit of a repository."""
    subdirectory: str | None = None
    """Of an archive or repository."""
    hash_source: str = ""
    """Where the hash was read: ``conda record``, ``direct_url.json``, ``wheel cache``, ``resolution``, ``index``."""
    platforms: tuple[str, ...] = ()
    """Platforms it is locked for, where there are several; empty for that of the environment alone."""
    accepted: tuple[str, ...] = ()
    """SHA-256 of every file that a lock made by another tool accepts, where it names several; `sha256` is None then."""
    path: str | None = None
    """Directory of a local project, absolute; in a written lock relative to it. None where it is none, or not near it."""
    installed_by: str = ""
    """What installed it: ``pip``, ``uv``, ``conda``, ``other``; empty where a lock does not say."""
    requested: tuple[str, ...] = ()
    """What the user asked for to get it: match specs (conda), its name (pip, which keeps no version); empty for a
    dependency, and where a lock does not say."""


# Kept apart from `LockedPackage`: metadata of an installed distribution rarely name its file. The code that finds the
# file states how it is known.
class WheelFile(Model, frozen=True, kw_only=True):
    """A file that an installed distribution is known to come from."""

    name: str
    """Normalised."""
    version: str
    kind: Literal["wheel", "sdist"]
    filename: str
    sha256: str
    source: str
    """How that is known: ``resolution``, ``wheel cache``, ``index``, … (`LockedPackage.hash_source`)."""
    url: str | None = None
    """Without credentials, None where it is not known."""
    index: str | None = None
    """The index where it is not the default one, without credentials."""
    size_bytes: int | None = None


class Incomplete(Model, frozen=True, kw_only=True):
    """An entry that a lock cannot state in full."""

    name: str
    version: str
    reason: str
    """What is missing, and what would give it."""


DifferenceKind = Literal["missing", "extra", "version", "build", "hash", "source", "files", "python", "platform"]


class LockDifference(Model, frozen=True, kw_only=True):
    """One difference between an environment and a lock, or its own records."""

    kind: DifferenceKind
    """``files``: files of it are gone, cut off or edited."""
    name: str
    """The package, or ``python`` or ``platform``."""
    manager: Literal["conda", "pip"] | None = None
    """Whose package it is."""
    expected: str | None = None
    """The one in the lock, or in the package's own record."""
    found: str | None = None
    """The installed one."""


class Lock(Model, frozen=True, kw_only=True):
    """The document of ``envmedic lock --json``."""

    schema: Literal["envmedic.lock/1"] = LOCK_SCHEMA
    envmedic: str
    """Version that made it."""
    created: str
    """RFC 3339, UTC."""
    platform: str
    """Conda's word for it: ``linux-64``."""
    python: str
    """Full version of the interpreter: ``3.11.7``."""
    packages: tuple[LockedPackage, ...] = ()
    """Conda packages first, each by name."""
    channels: tuple[str, ...] = ()
    """Channels in the order of their priority, without credentials."""
    indexes: tuple[str, ...] = ()
    """Indexes of wheels, the default one first, without credentials."""
    cuda: str | None = None
    """CUDA release that torch was built for: ``12.4``; None for a CPU build or without torch."""
    virtual_packages: dict[str, str] = {}
    """What the conda packages need of a machine: ``{"__glibc": "2.28", "__cuda": "12.4"}``."""
    incomplete: tuple[Incomplete, ...] = ()
    """Entries without hash or without source: the exit code says so."""
    verified: tuple[str, ...] = ()
    """Checks that passed in this environment before it was written, empty where none ran."""
    transaction: str | None = None
    """The repair that it records, None for an environment as it is."""
    format: LockFormatName | None = None
    """Format of the file that was written, None where none was."""
    path: str | None = None
    """Where it was written, None where it was not."""
    name: str = ""
    """Of the environment, for formats that name one."""
    asked: bool = False
    """Whether the indexes were asked for hashes and URLs that are not known here."""
    builds: bool = False
    """Whether a distribution of it is compiled where it is installed, or was compiled here, so that a CUDA toolkit is
    needed to make it again."""
    from_history: bool = False
    """Whether the file has what was asked for (`LockedPackage.requested`) in place of everything that is installed."""
    notes: tuple[str, ...] = ()
    """What the user should know."""
    interrupted: str | None = None
    """The interrupted transaction on the environment, which `envmedic recover` settles; null without one."""
