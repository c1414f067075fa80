"""The files that the lock of a project states, which a repair takes as the project's own sync would.

uv.lock has the URL and hash of every file, poetry.lock and pdm.lock mostly the hashes alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from packaging.tags import Tag
from packaging.utils import canonicalize_name

from envmedic import safe_io, toml
from envmedic.errors import InstallerError
from envmedic.installers.index import configuration
from envmedic.installers.index.configuration import IndexConfiguration
from envmedic.installers.index.credentials import without_credentials
from envmedic.installers.wheels import wheel_files
from envmedic.model.facts import Environment
from envmedic.model.pins import ProjectIndex

_LARGEST = 1 << 25
"""Limit for a lock, in bytes; those of large projects have a few MB."""
_READ = frozenset({"uv", "poetry", "pdm"})


class LockedFile(msgspec.Struct, frozen=True):
    """A wheel of a lock."""

    filename: str
    sha256: str
    url: str | None
    """None where the lock leaves it to the index."""
    size_bytes: int | None


Locked = Mapping[tuple[str, str], tuple[LockedFile, ...]]
"""The wheels of each locked release, by normalised name and version."""


def wheels(environment: Environment) -> Locked:
    """Return the wheels in the lock of the environment's project; empty where its own sync does not install them here."""
    project = environment.project
    if project is None or project.lock is None or project.tool not in _READ or not project.sync:
        return {}
    folder = Path(project.folder)
    try:
        content = toml.loads(safe_io.read(folder / project.lock, _LARGEST, follow=True).decode())
    except (OSError, ValueError, RecursionError):  # the reader of pins finds the same, and has none
        return {}
    listed = content.get("package")
    packages = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    # poetry before 1.5 has the files in a table of their own
    metadata = content.get("metadata")
    apart = metadata.get("files") if isinstance(metadata, dict) else None
    found: dict[tuple[str, str], tuple[LockedFile, ...]] = {}
    for package in packages:
        name, version = package.get("name"), package.get("version")
        if not isinstance(name, str) or not isinstance(version, str):
            continue
        files = package.get("wheels" if project.tool == "uv" else "files")
        files = files if isinstance(files, list) else (apart.get(name) if isinstance(apart, dict) else None)
        key = (canonicalize_name(name), version)
        read = (_file(item, folder, _registry(package)) for item in files or () if isinstance(item, dict))
        found[key] = (*found.get(key, ()), *(item for item in read if item is not None))
    return {key: files for key, files in found.items() if files}


def indexes(environment: Environment, names: frozenset[str]) -> tuple[ProjectIndex, ...]:
    """Return the indexes that the manifest gives as the sources of `names`: no other configuration leads to them."""
    project = environment.project
    if project is None or not project.sync:
        return ()
    wanted = {item.value for item in project.sources if item.kind == "index" and canonicalize_name(item.name) in names}
    return tuple(index for index in project.indexes if index.name in wanted)


def configured(
    environment: Environment, known: IndexConfiguration, environ: Mapping[str, str] = os.environ
) -> IndexConfiguration:
    """Return the user's configuration with the sources of a project of poetry or PDM, which ask no other indexes.

    Their index takes the place of the default one where it does for the tool; the rest is asked beside it.
    """
    project = environment.project
    if project is None or not project.sync or project.tool not in {"poetry", "pdm"}:
        return known
    asked = [item for item in project.indexes if not item.explicit]
    first = next((item for item in asked if item.default), None)
    rest = tuple(configuration.with_login(item.url, item.name, environ) for item in asked if item is not first)
    if first is None:
        return replace(known, pip=replace(known.pip, extra_index_urls=(*rest, *known.pip.extra_index_urls)))
    own = configuration.with_login(first.url, first.name, environ)
    return IndexConfiguration(
        pip=replace(known.pip, index_url=own, extra_index_urls=rest, no_index=False),
        uv=replace(known.uv, default_index=None, extra_indexes=()),
    )


def choose(name: str, version: str, locked: Locked, ranks: dict[Tag, int]) -> tuple[LockedFile, ...]:
    """Return the wheels of a release that fit the environment, the best first; empty for one that is not locked."""
    fitting = [item for item in locked.get((name, version), ()) if wheel_files.rank(item.filename, ranks) < len(ranks)]
    return tuple(sorted(fitting, key=lambda item: wheel_files.rank(item.filename, ranks)))


def refusal(name: str, version: str) -> InstallerError:
    """Return the error of a release of which the indexes have other files than the lock."""
    return InstallerError(
        f"No index has the wheel of {name} {version} that the project has locked",
        cause="the lock states its SHA-256, and every wheel that was found has another one",
        hint="Lock the project again if the files on its index were replaced",
    )


def _registry(package: Mapping[str, Any]) -> str:
    source = package.get("source")
    stated = source.get("registry") if isinstance(source, dict) else None
    return stated if isinstance(stated, str) else ""


def _file(item: Mapping[str, Any], folder: Path, registry: str) -> LockedFile | None:
    """An entry of a lock; None for an archive, and for one without a SHA-256."""
    url, path, size = item.get("url"), item.get("path"), item.get("size")
    # a path is that of a file on an index in a directory
    place = (
        url
        if isinstance(url, str)
        else (folder / registry / path).resolve().as_uri()
        if isinstance(path, str)
        else None
    )
    filename = item.get("file") or item.get("filename") or (place or "").partition("#")[0].rpartition("/")[2]
    algorithm, _, digest = str(item.get("hash", "")).partition(":")
    if not isinstance(filename, str) or not filename.endswith(".whl") or algorithm != "sha256":
        return None
    return LockedFile(
        filename=filename.replace("%2B", "+").replace("%2b", "+"),
        sha256=digest,
        url=without_credentials(place.partition("#")[0]) if place is not None else None,
        size_bytes=size if isinstance(size, int) else None,
    )
