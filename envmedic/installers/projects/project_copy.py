"""A copy of what the tool of a project reads to lock it: manifests, lock and settings, of all members of a workspace."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from envmedic import safe_io, toml
from envmedic.model.pins import Project

LARGEST = 1 << 25
"""Limit for a manifest or lock, in bytes."""
_BESIDE = ("uv.toml", "poetry.toml", "pdm.toml", ".python-version")
"""What the tools read besides manifest and lock."""


class NoEditError(Exception):
    """There is a reason why manifest and lock are not copied or edited; the text says it."""


@contextmanager
def copied(project: Project) -> Iterator[Path]:
    """Yield a directory with a copy of the project's own files. Raises NoEditError for one that needs more than these."""
    if project.manifest is None or project.lock is None:
        raise NoEditError("there is no lock beside the environment")
    folder = Path(project.folder)
    lock, manifest = parsed(folder / project.lock), parsed(folder / project.manifest)
    _require_own_indexes(manifest, folder)
    with tempfile.TemporaryDirectory(prefix="envmedic-project-") as name:
        copy = Path(name)
        for file in (project.manifest, project.lock, *_BESIDE, *manifests(project, lock)):
            if (folder / file).is_file():
                (copy / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / file, copy / file)
        for file in local_files(project, lock):
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            (copy / file).symlink_to(folder / file)
        yield copy


def parsed(path: Path) -> Mapping[str, Any]:
    """The content of a TOML file. Raises NoEditError."""
    try:
        return toml.loads(safe_io.read(path, LARGEST, follow=True).decode())
    except (OSError, ValueError, RecursionError) as error:
        raise NoEditError(f"{path} cannot be read: {error}") from error


def manifests(project: Project, lock: Mapping[str, Any]) -> tuple[str, ...]:
    """The manifests of the projects in directories that the lock names, relative to the folder. Raises NoEditError."""
    places = (_inside(place) for place, is_file in _local(project, lock) if not is_file)
    return tuple(dict.fromkeys(f"{place}/pyproject.toml" for place in places if place != "."))


def local_files(project: Project, lock: Mapping[str, Any]) -> tuple[str, ...]:
    """Wheels and archives of the project's own directory that the lock names. Raises NoEditError."""
    return tuple(dict.fromkeys(_inside(place) for place, is_file in _local(project, lock) if is_file))


def local_names(project: Project, lock: Mapping[str, Any]) -> frozenset[str]:
    """Names of the distributions that the lock has from directories and files."""
    return frozenset(str(item.get("name")) for item in _packages(lock) if any(_places(project, item)))


def _local(project: Project, lock: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    for item in _packages(lock):
        yield from _places(project, item)


def _places(project: Project, item: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Where an entry of a lock comes from on this machine, and whether that is a file."""
    source = item.get("source")
    if project.tool == "uv" and isinstance(source, dict):
        for kind in ("editable", "virtual", "directory", "path"):
            if isinstance(source.get(kind), str):
                yield source[kind], kind == "path"
    elif project.tool == "poetry" and isinstance(source, dict) and source.get("type") in {"directory", "file"}:
        yield str(source.get("url")), source["type"] == "file"
    elif project.tool == "pdm" and isinstance(item.get("path"), str):
        yield item["path"], item["path"].endswith((".whl", ".gz", ".zip"))


def _inside(place: str) -> str:
    path = PurePosixPath(place)
    if path.is_absolute() or ".." in path.parts:
        raise NoEditError(f"it has a source outside of its directory, {place}, which a copy would not find")
    return path.as_posix()


def _require_own_indexes(manifest: Mapping[str, Any], folder: Path) -> None:
    """Raise NoEditError for an index in a directory relative to the manifest."""
    own = table(manifest, "tool", "uv")
    indexes, links = own.get("index"), own.get("find-links")
    places = [item.get("url") for item in indexes if isinstance(item, dict)] if isinstance(indexes, list) else []
    places += links if isinstance(links, list) else []
    if any(isinstance(place, str) and "://" not in place and not place.startswith("/") for place in places):
        raise NoEditError(f"it has an index in a directory relative to {folder}, which a copy would not find")


def _packages(lock: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    listed = lock.get("package")
    yield from (item for item in listed if isinstance(item, dict)) if isinstance(listed, list) else ()


def table(content: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The table at a path of a document; an empty one where there is none."""
    found: object = content
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
