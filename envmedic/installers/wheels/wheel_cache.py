"""Local wheels from which distributions were installed, proven by content.

Sources: envmedic's own wheel cache, directories given by ``--find-links`` (or in pip's configuration), the wheels
that Python bundles for ``ensurepip``, and pip's HTTP cache (``http-v2`` in ``pip cache dir``, where a wheel is stored
whole and without its name). The layout of pip's cache is not documented: a change of it would hide wheels, but could
never make a wrong wheel pass, since content is what proves it.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from envmedic.installers.wheels import artifact_hash, download_cache, wheel_files
from envmedic.installers.wheels.remote_metadata import local_file
from envmedic.model.facts import Distribution, Environment
from envmedic.model.lock import WheelFile

_DIST_INFO = re.compile(r"(?P<name>[^-/]+)-(?P<version>[^-/]+)\.dist-info/RECORD")
_OWN = "wheel cache"
"""Name of envmedic's own cache, where a wheel's directory is its hash, verified on download."""
_ZIP = b"PK\x03\x04"
Key = tuple[str, str]
"""Normalised name and version."""


class StoredWheel(NamedTuple):
    """A wheel on this machine."""

    path: Path
    filename: str
    """Empty if it is stored without its name."""
    source: str
    """`LockedPackage.hash_source`."""


def find(
    wanted: Sequence[Distribution], environment: Environment, find_links: Sequence[Path]
) -> Mapping[Key, WheelFile]:
    """The wheels of `wanted` on this machine, each proven by every hash in its RECORD."""
    missing = {(item.name, item.version): item for item in wanted}
    found: dict[Key, WheelFile] = {}
    for kept, key in _candidates(environment, find_links, missing):
        if key not in found and is_proven(kept.path, missing[key], environment):
            found[key] = _file(kept, key)
            # A cache of pip can hold thousands of bodies: stop as soon as nothing is missing.
            if len(found) == len(missing):
                break
    return found


def _candidates(
    environment: Environment, find_links: Sequence[Path], missing: Mapping[Key, Distribution]
) -> Iterator[tuple[StoredWheel, Key]]:
    # The cheapest proof first: our own cache needs no hashing of the wheel, while a body in pip's cache has no name,
    # and must be opened to learn whose it is.
    own = (StoredWheel(path, path.name, _OWN) for folder in download_cache.folders() for path in folder.glob("*.whl"))
    linked = (
        StoredWheel(path, path.name, "find-links") for folder in find_links for path in sorted(folder.glob("*.whl"))
    )
    for kept in (*own, *linked, *_bundled(environment), *_stated(missing.values())):
        key = _by_name(kept.filename)
        if key is not None and key in missing:
            yield kept, key
    for path in _answers():
        key = _by_content(path)
        if key is not None and key in missing:
            yield StoredWheel(path, "", "pip cache"), key


def _stated(wanted: Iterable[Distribution]) -> Iterator[StoredWheel]:
    """Wheels that were installed by path and still exist."""
    for item in wanted:
        path = local_file(item.origin.url or "")
        if item.origin.kind == "archive" and path is not None and path.suffix == ".whl" and path.is_file():
            yield StoredWheel(path, path.name, "direct_url.json")


def _bundled(environment: Environment) -> Iterator[StoredWheel]:
    """Wheels of ensurepip, which ``python -m venv`` installs; Debian keeps them in /usr/share/python-wheels."""
    base = environment.interpreter.base_prefix
    version = ".".join((environment.interpreter.version or "").split(".")[:2])
    folders = [Path("/usr/share/python-wheels")]
    folders += [Path(base) / "lib" / f"python{version}" / "ensurepip" / "_bundled"] if base else []
    for folder in folders:
        for path in sorted(folder.glob("*.whl")):
            yield StoredWheel(path, path.name, "ensurepip")


def _answers() -> Iterator[Path]:
    """Bodies in pip's HTTP cache that are zip files."""
    # `pip cache dir` would have to run the pip of some environment; this is what it prints by default.
    base = os.environ.get("PIP_CACHE_DIR") or str(download_cache.root().parents[1] / "pip")
    for path in sorted(Path(base).glob("http-v2/?/?/?/?/?/*.body")):
        with path.open("rb") as file:
            if file.read(len(_ZIP)) == _ZIP:
                yield path


def _by_name(filename: str) -> Key | None:
    try:
        name, version, _, _ = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return None
    return name, str(version)


def _by_content(path: Path) -> Key | None:
    try:
        with zipfile.ZipFile(path) as archive:
            found = next(filter(None, map(_DIST_INFO.fullmatch, archive.namelist())), None)
    except zipfile.BadZipFile:
        return None  # an incomplete download
    return (canonicalize_name(found["name"]), found["version"]) if found is not None else None


def is_proven(path: Path, item: Distribution, environment: Environment) -> bool:
    """Whether every file of the wheel at `path` is installed as part of `item`."""
    try:
        with path.open("rb") as file:
            return artifact_hash.same_content(
                artifact_hash.wheel_hashes(file), artifact_hash.installed_hashes(item, environment)
            )
    except zipfile.BadZipFile:
        return False


def _file(kept: StoredWheel, key: Key) -> WheelFile:
    return WheelFile(
        name=key[0],
        version=key[1],
        kind="wheel",
        filename=kept.filename,
        sha256=kept.path.parent.name if kept.source == _OWN else wheel_files.sha256_of(kept.path),
        source=kept.source,
        size_bytes=kept.path.stat().st_size,
    )
