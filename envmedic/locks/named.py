"""Packages that a file names, for questions about a machine on which they are not installed. Pure.

Wider than the readers of locks: a file without hashes is none to install from, and can be judged as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from envmedic import limits, toml
from envmedic.errors import InputError
from envmedic.locks.formats.requirements import logical_lines
from envmedic.model.answers.fit import NamedPackage, NamedPackages
from envmedic.model.lock import Lock

_CONDA_PIN = re.compile(
    r"^(?:[\w./:-]+::)?(?P<name>[\w.-]+)\s*(?:==?|\s)\s*(?P<version>\d[\w.+!]*)(?:=(?P<build>[\w.*+]+))?$"
)
_HASHES = re.compile(r"\s--hash[= ]\S+")


def of_requirements(text: str, markers: Mapping[str, str]) -> NamedPackages:
    """Packages of a ``requirements.txt``; options and files that it includes are loose requirements."""
    packages, loose = [], []
    for number, entry in logical_lines(text):
        if entry.startswith(("--index-url", "--extra-index-url", "-i ", "--find-links", "-f ", "--hash", "--pre")):
            continue
        wanted = _HASHES.sub("", entry).strip()
        found = wanted if wanted.startswith("-") else _requirement(wanted, number, markers)
        if isinstance(found, NamedPackage):
            packages.append(found)
        elif found is not None:
            loose.append(found)
    return NamedPackages(packages=tuple(packages), loose=tuple(loose))


def _requirement(text: str, line: int, markers: Mapping[str, str]) -> NamedPackage | str | None:
    """The exact package, or `text` as it is where it names no single version; None where it does not apply there."""
    try:
        parsed = limits.parsed(text)
    except InvalidRequirement:
        return text
    if parsed.marker is not None and not parsed.marker.evaluate(dict(markers)):
        return None
    name = canonicalize_name(parsed.name)
    if parsed.url is not None:
        return _of_url(name, parsed.url, line) or text
    exact = [item.version for item in parsed.specifier if item.operator in {"==", "==="} and "*" not in item.version]
    return NamedPackage(name=name, version=exact[0], line=line) if len(exact) == 1 else text


def _of_url(name: str, url: str, line: int) -> NamedPackage | None:
    file = filename(url)
    try:
        return NamedPackage(name=name, version=str(parse_wheel_filename(file)[1]), line=line, files=(file,), index=url)
    except InvalidWheelFilename:
        return None


def filename(url: str) -> str:
    """The last part of a URL's path."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


def of_pylock(text: str, source: str, markers: Mapping[str, str]) -> NamedPackages:
    """Packages of a ``pylock.toml`` (PEP 751) whose markers hold there. Raises InputError for another document."""
    try:
        raw = toml.loads(text)
        limits.require(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source} is not TOML", cause=str(error), hint="Give a pylock.toml") from error
    packages, loose = [], []
    for item in raw.get("packages", ()):
        if not (isinstance(item, dict) and _applies(item.get("marker"), markers)):
            continue
        name, version = canonicalize_name(str(item.get("name", ""))), item.get("version")
        if version is None:
            loose.append(f"{name} (a project, a repository or an archive)")
            continue
        files = tuple(_file_of(wheel) for wheel in item.get("wheels") or ())
        packages.append(NamedPackage(name=name, version=str(version), files=files, index=item.get("index")))
    return NamedPackages(packages=tuple(packages), loose=tuple(loose))


def _file_of(wheel: Mapping[str, Any]) -> str:
    return str(wheel.get("name") or filename(str(wheel.get("url") or wheel.get("path") or "")))


def _applies(marker: object, markers: Mapping[str, str]) -> bool:
    if not isinstance(marker, str):
        return True
    try:
        # sets of extras and groups are those of a default installation: none
        return Marker(marker).evaluate({**markers, "extras": frozenset(), "dependency_groups": frozenset()})
    except (InvalidMarker, KeyError):
        return True


def of_lock(lock: Lock) -> NamedPackages:
    """Packages of a lock that a reader of `locks` has read."""
    packages = tuple(
        NamedPackage(
            name=item.name,
            version=item.version,
            manager=item.manager,
            build=item.build,
            files=(item.filename,) if item.filename and item.filename.endswith(".whl") else (),
            index=item.url,
        )
        for item in lock.packages
    )
    return NamedPackages(packages=packages, python=lock.python or None)


def of_environment(raw: Mapping[str, Any], markers: Mapping[str, str]) -> NamedPackages:
    """Packages of conda's ``environment.yml``: those with one version, of conda's part and of pip's."""
    packages, loose = [], []
    for item in _entries(raw):
        if isinstance(item, dict):
            for wanted in item.get("pip") or ():
                found = _requirement(str(wanted), 0, markers)
                if isinstance(found, NamedPackage):
                    packages.append(found)
                elif found is not None:
                    loose.append(found)
            continue
        pin = _CONDA_PIN.match(str(item).strip())
        if pin is None:
            loose.append(str(item))
            continue
        packages.append(
            NamedPackage(name=pin["name"].lower(), version=pin["version"], manager="conda", build=pin["build"])
        )
    return NamedPackages(packages=tuple(packages), loose=tuple(loose), python=_python(packages))


def _entries(raw: Mapping[str, Any]) -> Sequence[Any]:
    found = raw.get("dependencies")
    return found if isinstance(found, list) else ()


def _python(packages: Sequence[NamedPackage]) -> str | None:
    return next((item.version for item in packages if item.name == "python" and item.manager == "conda"), None)
