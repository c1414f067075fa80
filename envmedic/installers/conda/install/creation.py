"""Conda packages of a lock, as a change for a new environment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from envmedic.conda_meta import specs
from envmedic.errors import InputError, InstallerError
from envmedic.installers.conda.install import package_cache
from envmedic.installers.conda.solve import helper_client
from envmedic.model.conda import CondaArtifact, CondaChange
from envmedic.model.lock import LockedPackage

_ABOUT_S = 600.0


def change(wanted: Sequence[LockedPackage]) -> CondaChange:
    """The change, without the metadata of its packages: `add_metadata` reads that from the fetched files.

    Packages that no other package of the lock needs become the requested specs of the history. Raises InputError for
    entries without address or hash.
    """
    lacking = [item.name for item in wanted if not item.url or not (item.sha256 or item.md5)]
    if lacking:
        raise InputError(
            f"The lock does not say where {', '.join(lacking)} can be had",
            cause="A conda package needs its URL, and an md5 or sha256",
            hint="Write the lock again with `envmedic lock` or `conda-lock`",
        )
    # A lock does not say what the user requested: packages that nothing needs stand for that, and Python.
    needed = {name for item in wanted for text in item.requires if (name := _name(text)) is not None}
    asked = tuple(f"{item.name}={item.version}" for item in wanted if item.name not in needed or item.name == "python")
    return CondaChange(install=tuple(map(_artifact, wanted)), specs=asked)


def _name(spec: str) -> str | None:
    try:
        return specs.name_of(spec)
    except ValueError:
        return None


def _artifact(item: LockedPackage) -> CondaArtifact:
    url = item.url or ""
    filename = item.filename or url.rpartition("/")[2]
    stem = filename.removesuffix(".conda").removesuffix(".tar.bz2")
    return CondaArtifact(
        name=item.name,
        version=item.version,
        # A lock of another tool may lack the build, with which the file name ends.
        build=item.build or stem.rpartition("-")[2],
        channel=item.channel or url.rsplit("/", 2)[0],
        subdir=item.subdir or url.rsplit("/", 2)[1],
        filename=filename,
        url=url,
        sha256=item.sha256,
        md5=item.md5,
        size_bytes=item.size_bytes,
    )


def add_metadata(found: CondaChange) -> CondaChange:
    """`found` with the metadata of each fetched package, for its record. Raises InstallerError.

    A package with another name, version or build than in the lock is refused.
    """
    paths = {item.name: str(package_cache.path_of(item)) for item in found.install}
    answer = helper_client.ask({"do": "about", "archives": list(paths.values())}, timeout_s=_ABOUT_S)
    artifacts = []
    for item in found.install:
        about = answer["about"][paths[item.name]]
        # The hash proves the file, not its description: lock files are edited by hand.
        said = (about.get("name"), about.get("version"), about.get("build"))
        if said != (item.name, item.version, item.build):
            raise InstallerError(
                f"{item.filename} is not what the lock says",
                cause=f"locked: {item.name} {item.version} {item.build}; it holds {' '.join(map(str, said))}",
                hint="Write the lock again with `envmedic lock` or `conda-lock`",
            )
        metadata = about | {"channel": item.channel, "url": item.url}
        size = Path(paths[item.name]).stat().st_size
        artifacts.append(msgspec.structs.replace(item, metadata=metadata, size_bytes=size))
    return msgspec.structs.replace(found, install=tuple(artifacts))
