"""Locks for several platforms: the environment's own and solved ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from envmedic.errors import InputError
from envmedic.locks.formats import LOCK_FORMATS
from envmedic.model.conda import CondaArtifact
from envmedic.model.facts import Host
from envmedic.model.lock import Lock, LockedPackage, LockFormatName, WheelFile

KNOWN: Final[Mapping[str, tuple[str, str]]] = {
    "linux-64": ("linux", "x86_64"),
    "linux-aarch64": ("linux", "aarch64"),
    "osx-64": ("darwin", "x86_64"),
    "osx-arm64": ("darwin", "arm64"),
    "win-64": ("win32", "AMD64"),
}
"""``sys.platform`` and machine of each lockable platform, by conda's names."""
_SOURCES: Final = frozenset({"sdist", "vcs", "archive"})
"""Kinds without a platform, unless the archive is a wheel."""


def require(names: Iterable[str], name: LockFormatName) -> None:
    """Raise InputError for a platform that cannot be locked, or a format that holds one platform only."""
    unknown = [name for name in names if name not in KNOWN]
    if unknown:
        hint = f"Choose from {', '.join(KNOWN)}"
        raise InputError(f"{unknown[0]} is no platform that can be locked", hint=hint)
    if not LOCK_FORMATS[name].holds_platforms:
        several = " or ".join(form.name for form in LOCK_FORMATS.values() if form.holds_platforms)
        raise InputError(f"A lock as {name} is for one platform", hint=f"Choose {several} with --platform")


def host_of(name: str, found: Lock, here: Host) -> Host:
    """A machine of that platform with this lock's CUDA, and glibc 2.28 and Linux 5.10, conda-lock's defaults."""
    system, machine = KNOWN[name]
    linux = system == "linux"
    # the driver here comes first: it bounds what this user can run; macOS has had no CUDA since 10.14
    cuda = None if system == "darwin" else here.driver_cuda or found.virtual_packages.get("__cuda") or found.cuda
    return Host(
        system=system,
        machine=machine,
        kernel="5.10" if linux else None,
        glibc="2.28" if linux else None,
        driver_cuda=cuda,
        source=name,
    )


def is_source(item: LockedPackage) -> bool:
    """Whether an entry is the same on every platform, as it is built at installation."""
    return item.kind in _SOURCES and not (item.filename or "").endswith(".whl")


def joined(found: Lock, others: Mapping[str, tuple[LockedPackage, ...]]) -> Lock:
    """`found` with the entries of other platforms; each entry has its platforms."""
    own = [msgspec.structs.replace(item, platforms=(found.platform,)) for item in found.packages]
    entries = {_key(item): item for item in own}
    for name, packages in others.items():
        for item in packages:
            old = entries.get(_key(item))
            platforms = (*(old.platforms if old is not None else ()), name)
            entries[_key(item)] = msgspec.structs.replace(old or item, platforms=platforms)
    ordered = sorted(entries.values(), key=lambda item: (item.manager, item.name, item.platforms))
    return msgspec.structs.replace(found, packages=tuple(ordered))


def _key(item: LockedPackage) -> tuple[object, ...]:
    """Identity of an entry: its file, or its source where it has no file."""
    # a wheel tagged `any` is one entry for all platforms, while wheels of one platform stay separate
    return item.manager, item.name, item.version, item.kind, item.sha256, item.url, item.revision


def of_conda(artifact: CondaArtifact) -> LockedPackage:
    """A conda package that a solver chose."""
    return LockedPackage(
        manager="conda",
        name=artifact.name,
        version=artifact.version,
        kind="conda",
        url=artifact.url,
        filename=artifact.filename,
        sha256=artifact.sha256,
        md5=artifact.md5,
        size_bytes=artifact.size_bytes,
        requires=tuple(artifact.metadata.get("depends", ())),
        build=artifact.build,
        channel=artifact.channel,
        subdir=artifact.subdir,
        hash_source="channel",
    )


def of_wheel(file: WheelFile, requires: tuple[str, ...]) -> LockedPackage:
    """A wheel that an index has for another platform."""
    return LockedPackage(
        manager="pip",
        name=file.name,
        version=file.version,
        kind=file.kind,
        url=file.url,
        filename=file.filename,
        sha256=file.sha256,
        size_bytes=file.size_bytes,
        requires=requires,
        hash_source=file.source,
    )
