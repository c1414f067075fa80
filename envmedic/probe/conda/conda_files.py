"""Comparison of the files of conda packages with their records in ``conda-meta``."""

from __future__ import annotations

import base64
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from envmedic.conda_meta import records, small_files
from envmedic.conda_meta.records import BriefFile, BriefRecord, PrefixRecord, Records
from envmedic.model.facts import DistributionFiles
from envmedic.probe.metadata import normalise
from envmedic.probe.packages import contents
from envmedic.probe.packages.record_check import SHOWN, Disk, needed


@dataclass(frozen=True)
class Index:
    """Which record lists which file; byte code and directories apart."""

    files: Mapping[str, Sequence[tuple[str, BriefFile]]]
    """What each record lists, by the record's file: real path relative to the prefix, and entry."""
    owners: Mapping[str, str]
    """The file of the record by path, both relative to the prefix."""
    contested: Collection[str]
    """Paths of several packages. The one linked last provides the content, and the others are not damaged by it."""


@dataclass
class _Comparison:
    """The comparison of one package."""

    record: BriefRecord
    where: str
    recorded: int = 0
    absent: int = 0
    missing: list[str] = field(default_factory=list)
    """Those absent that a program needs."""
    other: list[tuple[str, int, int]] = field(default_factory=list)
    """Path, size on disk, recorded size of those of another size."""
    altered: list[str] = field(default_factory=list)
    """Those of the recorded size that hold something else, where contents were read."""


def index(installed: Records[BriefRecord]) -> Index:
    """The owner of each file that the records list, by its real path."""
    files: dict[str, Sequence[tuple[str, BriefFile]]] = {}
    owners: dict[str, str] = {}
    for where, record in installed.packages.items():
        listed = [entry for entry in record.files(installed.site_packages) if not entry[0].endswith(".pyc")
                  and entry[1].path_type != "directory" and _inside(entry[0])]  # fmt: skip
        files[where] = listed
        owners.update(dict.fromkeys([path for path, _ in listed], where))
    # equal counts prove that no path comes twice, without a second pass over all of them
    count = sum(map(len, files.values()))
    return Index(files, owners, _contested(files.values()) if len(owners) != count else frozenset())


def _inside(path: str) -> bool:
    """Whether a path of a record lies inside the prefix by its words."""
    return path[:1] != "/" and (".." not in path or ".." not in path.split("/"))


def _contested(files: Iterable[Sequence[tuple[str, BriefFile]]]) -> frozenset[str]:
    """Paths that come more than once."""
    seen: set[str] = set()
    again: set[str] = set()
    for path in (path for listed in files for path, _ in listed):
        (again if path in seen else seen).add(path)
    return frozenset(again)


def compare(
    installed: Records[BriefRecord], disk: Disk, known: Index, passed_over: Collection[str] = (), *, deep: bool = False
) -> tuple[DistributionFiles, ...]:
    """Hold every record against the disk; packages with all their files as listed are left out.

    `passed_over` are records of packages over which another installer put its own. `deep` reads and hashes each file.
    """
    held = [_hold(where, record, disk, known)
            for where, record in installed.packages.items() if where not in passed_over]  # fmt: skip
    if deep:
        _hash_contents(held, installed.site_packages, disk, known)
    # only differences are reported: a prefix has hundreds of packages, nearly all as recorded
    reports = (_report(item, disk) for item in held)
    return tuple(item for item in reports if item.missing_count or item.cut_off or item.changed_count)


def _hold(where: str, record: BriefRecord, disk: Disk, known: Index) -> _Comparison:
    """Look up every file of one record: a hundred thousand of them all together, nearly all as recorded."""
    listed = known.files[where]
    result = _Comparison(record, where, recorded=len(listed))
    sizes = map(disk.sizes.get, [path for path, _ in listed])
    for (path, item), there in zip(listed, sizes, strict=True):
        if there is None or there != item.size_in_bytes:
            _differs(result, path, item, disk.size(path) if there is None else there, disk)
    # a contested path has the size of the last package linked, which is no damage of this one
    result.other = [entry for entry in result.other if entry[0] not in known.contested]
    return result


def _differs(held: _Comparison, path: str, item: BriefFile, there: int | None, disk: Disk) -> None:
    expected = item.installed_size
    if there is None:
        held.absent += 1
        if _matters(path, item, disk):
            held.missing.append(path)
    elif expected is not None and there != expected:
        held.other.append((path, there, expected))


def _matters(path: str, item: BriefFile, disk: Disk) -> bool:
    """Whether the absence of a file can break a program: modules, libraries and programs, not metadata."""
    if item.size_in_bytes == 0:
        # an empty file holds no code: a package without its empty __init__.py still imports, as a namespace package
        return False
    if path.startswith("bin/") and path.count("/") == 1 and item.path_type == "hardlink":
        return True
    code = path.endswith(".py") or contents.is_library(path)
    return code and item.path_type in {"hardlink", "softlink"} and needed(path, disk)


def _report(item: _Comparison, disk: Disk) -> DistributionFiles:
    cut = [path for path, there, size in item.other if contents.cut_off(disk.prefix / path, there, size)]
    cut += [path for path in item.altered if contents.is_library(path)]
    told = set(cut)
    changed = [path for path in (*(path for path, _, _ in item.other), *item.altered) if _own(path, told)]
    return DistributionFiles(
        distribution=normalise(item.record.name),
        version=item.record.version,
        metadata_path=item.where,
        recorded=item.recorded,
        matching=item.recorded - item.absent - len(item.other) - len(item.altered),
        missing=tuple(item.missing[:SHOWN]),
        missing_count=len(item.missing),
        cut_off=tuple(cut),
        changed=tuple(changed[:SHOWN]),
        changed_count=len(changed),
    )


def _own(path: str, told: Collection[str]) -> bool:
    """Whether to report a file as changed: code only, since tools rewrite metadata, caches and settings."""
    code = path.endswith(".py") or contents.is_library(path) or path.startswith("bin/")
    return code and path not in told


def _hash_contents(held: Iterable[_Comparison], site_packages: str, disk: Disk, known: Index) -> None:
    """Hash every file that has the recorded size, several at a time."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for item in held:
            passed = {path for path, _, _ in item.other} | set(known.contested)
            asked = dict(_hashes(item.where, site_packages, disk, passed))
            found = pool.map(contents.digest, (disk.prefix / path for path in asked))
            pairs = zip(asked.items(), found, strict=True)
            item.altered += [path for (path, expected), there in pairs if there not in {None, expected}]


def _hashes(where: str, site_packages: str, disk: Disk, passed: Collection[str]) -> Iterator[tuple[str, str]]:
    """Paths of a record with the hashes that their content must have, as RECORD writes them."""
    for path, item in full(disk.prefix, where).files(site_packages):
        expected = digest_of(item.installed_sha256)
        if expected and path not in passed and not path.endswith(".pyc") and path in disk.sizes:
            yield path, expected


def full(prefix: Path, where: str) -> PrefixRecord:
    """A record with the hashes of its files. Raises OSError or ValueError where it changed since it was read."""
    return records.decode(small_files.read(prefix / where) or b"")


def digest_of(hexadecimal: str | None) -> str | None:
    """A hash of conda's as RECORD writes it; None for none and for what is no hash."""
    try:
        raw = bytes.fromhex(hexadecimal or "")
    except ValueError:
        return None
    return "sha256=" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode() if raw else None
