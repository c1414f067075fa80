"""Format ``pylock.toml``, through `packaging.pylock`.

https://packaging.python.org/en/latest/specifications/pylock-toml/
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from packaging.markers import Marker
from packaging.pylock import (
    Package,
    PackageArchive,
    PackageDirectory,
    PackageSdist,
    PackageVcs,
    PackageWheel,
    Pylock,
    PylockUnsupportedVersionError,
    PylockValidationError,
)
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from envmedic import toml
from envmedic.errors import InputError, InstallerError
from envmedic.locks import seal
from envmedic.locks.completeness import complete
from envmedic.locks.lock_format import LockFormat
from envmedic.locks.markers import variables
from envmedic.model.lock import Lock, LockedKind, LockedPackage

_LOCK_VERSION = Version("1.0")
_MARK = re.compile(r"^lock-version\s*=", re.MULTILINE)


def text(lock: Lock) -> str:
    """The file; what it cannot hold is named in comments. Raises InstallerError where packaging would refuse it."""
    held = complete(lock, FORMAT)
    all_platforms = tuple(dict.fromkeys(name for item in held for name in item.platforms))
    packages = [_package(group, all_platforms) for group in _groups(held)]
    document = Pylock(
        lock_version=_LOCK_VERSION,
        environments=[Marker(_marker(name)) for name in all_platforms or (lock.platform,)],
        requires_python=SpecifierSet(f"=={lock.python.rpartition('.')[0]}.*") if lock.python else None,
        created_by="envmedic",
        packages=packages,
    )
    content = document.to_dict()
    tool = {**seal.facts(lock), "digest": seal.digest(_entries(content))}
    body = _toml({**content, "tool": {"envmedic": tool}})
    missing = [f"# not in it: {item.name} {item.version}: {item.reason}" for item in lock.incomplete]
    head = ["# What is installed, exactly; made by `envmedic lock`.", *missing]
    try:
        Pylock.from_dict(toml.loads(body))  # _toml is our own writer: prove the text before anyone relies on it
    except PylockValidationError as error:
        hint = "Choose another --format"
        raise InstallerError("The environment cannot be locked as pylock", cause=str(error), hint=hint) from error
    return "\n".join([*head, body])


def _marker(platform: str) -> str:
    """The marker of a platform, by conda's word for it."""
    values = variables("", platform)
    return f"sys_platform == '{values['sys_platform']}' and platform_machine == '{values['platform_machine']}'"


def _groups(items: Iterable[LockedPackage]) -> list[list[LockedPackage]]:
    """Entries of one package with a file for each platform."""
    # pylock wants one entry with several wheels; two entries of one name must have exclusive markers
    groups: dict[tuple[object, ...], list[LockedPackage]] = {}
    for item in items:
        groups.setdefault((item.name, item.version, item.kind, item.index, item.revision), []).append(item)
    return [group for _, group in sorted(groups.items(), key=lambda pair: str(pair[0]))]


def _entries(content: Mapping[str, Any]) -> object:
    return content.get("packages", [])


def _package(group: list[LockedPackage], platforms: tuple[str, ...]) -> Package:
    item = group[0]
    hashes = {"sha256": item.sha256} if item.sha256 else {}
    size, url = item.size_bytes, item.url
    own = [name for name in platforms if any(name in each.platforms for each in group)]
    # no marker where the package is on all platforms: `environments` limits the file already
    markers = [f"({_marker(name)})" for name in own] if len(own) < len(platforms) else []
    return Package(
        name=canonicalize_name(item.name),
        # the version of a source tree may change with it
        version=Version(item.version) if item.path is None else None,
        marker=Marker(" or ".join(markers)) if markers else None,
        index=item.index,
        wheels=list(map(_wheel, group)) if item.kind == "wheel" else None,
        sdist=PackageSdist(url=url, size=size, hashes=hashes) if item.kind == "sdist" else None,
        archive=PackageArchive(url=url, size=size, hashes=hashes, subdirectory=item.subdirectory)
        if item.kind in {"archive", "unknown"}
        else None,
        directory=PackageDirectory(path=item.path, editable=item.kind == "editable") if item.path is not None else None,
        vcs=PackageVcs(type="git", url=url, commit_id=item.revision or "", subdirectory=item.subdirectory)
        if item.kind == "vcs"
        else None,
    )


def _wheel(item: LockedPackage) -> PackageWheel:
    return PackageWheel(url=item.url, size=item.size_bytes, hashes={"sha256": item.sha256 or ""})


def parse(content: str, source: str) -> Lock:
    """The lock in `content`. Raises InputError where it is none, of an unknown version, or edited by hand."""
    try:
        raw = toml.loads(content)
        document = Pylock.from_dict(raw)
    except PylockUnsupportedVersionError as error:
        hint = f"envmedic reads lock-version 1.0 of pylock; {seal.AGAIN[0].lower()}{seal.AGAIN[1:]}"
        raise InputError(f"{source} is a pylock of an unknown version", cause=str(error), hint=hint) from error
    except (ValueError, PylockValidationError, RecursionError) as error:  # also numbers of thousands of digits
        raise InputError(f"{source} is not a valid pylock.toml", cause=str(error), hint=seal.AGAIN) from error
    facts = raw.get("tool", {}).get("envmedic", {})
    seal.require(_entries(document.to_dict()), facts.get("digest"), source)
    packages = tuple(_read(item, source) for item in document.packages if _applies(item, document))
    values = seal.restored({key: str(value) for key, value in facts.items()})
    return Lock(
        **values,  # type: ignore[arg-type]  # texts
        packages=tuple(sorted(packages, key=lambda item: item.name)),
        indexes=tuple(dict.fromkeys(item.index for item in packages if item.index)),
        format=FORMAT.name,
        path=source,
    )


def _applies(item: Package, document: Pylock) -> bool:
    """Whether an entry is for this machine, and in the groups that are installed where nobody chooses others."""
    chosen = {"extras": frozenset[str](), "dependency_groups": frozenset(document.default_groups or ())}
    return item.marker is None or item.marker.evaluate(chosen, context="lock_file")


def _read(item: Package, source: str) -> LockedPackage:
    files: list[PackageWheel | PackageSdist | PackageArchive] = [*(item.wheels or ())]
    # an installer prefers a wheel, so the hash of the source archive says nothing of what it installs
    files += [item.sdist] if item.sdist is not None and not files else []
    files += [item.archive] if item.archive is not None else []
    hashes = tuple(file.hashes["sha256"] for file in files if "sha256" in file.hashes)
    one = files[0] if len(files) == 1 else None
    url = one.url if one is not None else item.vcs.url if item.vcs is not None else None
    return LockedPackage(
        manager="pip",
        name=item.name,
        version=str(item.version) if item.version is not None else "",
        kind=_kind(item),
        url=url,
        filename=_filename(one),
        sha256=hashes[0] if len(hashes) == 1 else None,
        accepted=hashes if len(hashes) > 1 else (),
        size_bytes=one.size if one is not None else None,
        index=item.index,
        path=str((Path(source).parent / item.directory.path).resolve()) if item.directory is not None else None,
        revision=item.vcs.commit_id if item.vcs is not None else None,
        subdirectory=_subdirectory(item),
        hash_source="lock" if hashes else "",
    )


def _kind(item: Package) -> LockedKind:
    if item.wheels:
        return "wheel"
    if item.directory is not None:
        return "editable" if item.directory.editable else "directory"
    return "vcs" if item.vcs is not None else "sdist" if item.sdist is not None else "archive"


def _filename(file: PackageWheel | PackageSdist | PackageArchive | None) -> str | None:
    if file is None:
        return None
    name = None if isinstance(file, PackageArchive) else file.name
    return name or unquote((file.url or file.path or "").rpartition("/")[2]) or None


def _subdirectory(item: Package) -> str | None:
    for part in (item.vcs, item.archive):
        if part is not None:
            return part.subdirectory
    return None


def _toml(document: Mapping[str, Any]) -> str:
    """`document` as TOML 1.0: scalars first, then ``[[packages]]`` with their parts inline, then ``[tool]``."""
    lines = [f"{key} = {_value(value)}" for key, value in document.items() if key not in {"packages", "tool"}]
    if not document["packages"]:
        lines.append("packages = []")
    for package in document["packages"]:
        lines += ["", "[[packages]]", *(f"{key} = {_value(value)}" for key, value in package.items())]
    for name, table in document.get("tool", {}).items():
        lines += ["", f"[tool.{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML's basic strings escape as JSON


FORMAT: Final = LockFormat(
    name="pylock",
    filename="pylock.toml",
    about="wheels with hashes (PEP 751), for pip and uv",
    holds="wheels, source archives, archives, repositories with their commit, and projects in directories near it",
    read_by="`uv pip sync pylock.toml`, a recent pip (`-r pylock.toml`, experimental there)",
    holds_conda=False,
    needs_conda=False,
    holds_hashes=True,
    needs_url=True,
    needs_pep440=True,
    holds_repositories=True,
    holds_subdirectories=True,
    holds_directories=True,
    holds_platforms=True,
    noun="a pylock.toml",
    recognises=lambda path, content: path.suffix.lower() == ".toml" or _MARK.search(content) is not None,
    write=text,
    read=lambda content, source, _platform: parse(content, source),
)
