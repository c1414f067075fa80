"""Comparison of a wanted lock with the lock of an environment. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from envmedic.model.facts import DistributionFiles
from envmedic.model.lock import DifferenceKind, Lock, LockDifference, LockedPackage

_IN_PLACE = frozenset({"editable", "directory", "vcs"})
"""Kinds without a package file, and so without a hash."""


@dataclass(frozen=True)
class LockComparison:
    """The result of a comparison."""

    differences: tuple[LockDifference, ...]
    unproven: tuple[str, ...] = ()
    """Packages of the right version whose origin file is not known, so that no hash proves them."""


def compare(wanted: Lock, found: Lock) -> LockComparison:
    """Differences between the lock of an environment (`found`) and the `wanted` one, package by package."""
    # by manager and name: conda and pip may have distinct packages of one name
    here = {(item.manager, item.name): item for item in found.packages}
    asked = {(item.manager, item.name): item for item in wanted.packages}
    differences = list(_surroundings(wanted, found))
    unproven = []
    for key, item in asked.items():
        there = here.get(key)
        if there is None:
            differences.append(_difference("missing", item, item.version, None))
            continue
        differences += _of_one(item, there)
        if _hashes(item) and not _common(item, there):
            unproven.append(f"{item.name} {item.version}")
    # what the lock says that it does not hold is no surprise
    known = {item.name for item in wanted.incomplete}
    extra = (item for key, item in here.items() if key not in asked and item.name not in known)
    differences += [_difference("extra", item, None, item.version) for item in extra]
    return LockComparison(tuple(differences), tuple(unproven))


def _surroundings(wanted: Lock, found: Lock) -> Iterator[LockDifference]:
    if wanted.platform and wanted.platform != found.platform:
        yield LockDifference(kind="platform", name="platform", expected=wanted.platform, found=found.platform)
    # where conda's Python is an entry, its own comparison covers the version exactly; patch releases of another
    # Python are compatible with the same wheels
    conda = any(item.manager == "conda" and item.name == "python" for item in wanted.packages)
    if wanted.python and not conda and minor(wanted.python) != minor(found.python):
        yield LockDifference(kind="python", name="python", expected=minor(wanted.python), found=found.python)


def minor(version: str) -> str:
    """``3.11`` of ``3.11.7``."""
    return ".".join(version.split(".")[:2])


def _difference(kind: DifferenceKind, item: LockedPackage, expected: str | None, found: str | None) -> LockDifference:
    return LockDifference(kind=kind, name=item.name, manager=item.manager, expected=expected, found=found)


def _of_one(wanted: LockedPackage, found: LockedPackage) -> Iterator[LockDifference]:
    """The first difference of one package; another version always has another build and hash as well."""
    if wanted.version and not _same_version(wanted.version, found.version):
        yield _difference("version", wanted, wanted.version, found.version)
    elif wanted.build and wanted.build != found.build:
        yield _difference("build", wanted, wanted.build, found.build)
    elif (hashes := _common(wanted, found)) is not None:
        # a lock may accept several files of one version, such as the wheel and the source archive
        if not hashes[0] & hashes[1]:
            yield _difference("hash", wanted, " or ".join(sorted(hashes[0])), next(iter(hashes[1])))
    elif _source(wanted) != _source(found):
        yield _difference("source", wanted, _source(wanted), _source(found))


def _same_version(one: str, other: str) -> bool:
    try:
        return Version(one) == Version(other)
    except InvalidVersion:  # of conda, such as 9e
        return one == other


def _hashes(item: LockedPackage) -> frozenset[str]:
    return frozenset(filter(None, (item.sha256, *item.accepted)))


def _common(wanted: LockedPackage, found: LockedPackage) -> tuple[frozenset[str], frozenset[str]] | None:
    """Hashes of one algorithm from both sides; None without a common algorithm."""
    # MD5 last: old records of conda have nothing else
    if _hashes(wanted) and _hashes(found):
        return _hashes(wanted), _hashes(found)
    if wanted.md5 and found.md5:
        return frozenset({wanted.md5}), frozenset({found.md5})
    return None


def _source(item: LockedPackage) -> str:
    """The origin of a package without comparable hashes."""
    if item.kind == "vcs":
        return f"{item.url}@{item.revision}"
    if item.kind in _IN_PLACE:
        return item.kind
    return item.channel.rstrip("/") if item.manager == "conda" and item.channel else "a package file"


def damaged(files: Sequence[DistributionFiles]) -> tuple[LockDifference, ...]:
    """Packages whose files differ from their own records."""
    found = []
    for item in files:
        parts = [
            f"{count} {what}"
            for count, what in (
                (item.missing_count, "missing"),
                (len(item.cut_off), "cut off or of another content"),
                (item.changed_count, "edited"),
            )
            if count
        ]
        if parts:
            named = next(iter((*item.missing, *item.cut_off, *item.changed)), "")
            text = f"{', '.join(parts)}: {named}" if named else ", ".join(parts)
            found.append(
                LockDifference(
                    kind="files",
                    name=item.distribution,
                    manager="conda" if item.metadata_path.startswith("conda-meta/") else "pip",
                    expected=f"{item.recorded} files as recorded",
                    found=text,
                )
            )
    return tuple(found)
