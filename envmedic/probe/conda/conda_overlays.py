"""Overlays: distributions of pip and uv with the name or the files of a conda package."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from envmedic.conda_meta.records import BriefRecord, Records
from envmedic.model.conda import CondaOverlay, CondaPackage
from envmedic.model.facts import FileConflict
from envmedic.probe.conda import conda_files
from envmedic.probe.conda.conda_files import Index
from envmedic.probe.packages import contents
from envmedic.probe.packages.distributions import Installed, Scan
from envmedic.probe.packages.record_check import SHOWN, Disk, is_code

Row = Sequence[str]


@dataclass(frozen=True)
class Overlays:
    """Packages with an overlay, and how their files stand."""

    overlaid: tuple[CondaOverlay, ...] = ()
    conflicts: tuple[FileConflict, ...] = ()


@dataclass
class _Pair:
    """A conda package and a distribution of another installer."""

    package: CondaPackage
    item: Installed
    base: str
    shared: dict[str, str] = field(default_factory=dict)
    """Paths that both list → the hash that the distribution lists."""

    @property
    def same(self) -> bool:
        return self.item.distribution.name in self.package.distributions


@dataclass(frozen=True)
class _Content:
    """Owners of the content on disk, for files that both list with different content."""

    paths: tuple[str, ...] = ()
    condas: int = 0
    others: int = 0


def find(
    installed: Records[BriefRecord],
    packages: Iterable[CondaPackage],
    known: Index,
    scans: Iterable[Scan],
    disk: Disk,
) -> Overlays:
    """Find the distributions of pip and uv that overlay a conda package, by name or by files."""
    by_record = {item.record: item for item in packages}
    pairs = [pair for scan in scans for item in scan.installed for pair in _pairs(item, scan, by_record, known, disk)]
    judged = [(pair, _content(pair, installed, known, disk)) for pair in pairs]
    told = [(pair, content) for pair, content in judged if pair.same or content.paths]
    overlaid = tuple(_overlay(pair, content, known, disk) for pair, content in told)
    return Overlays(overlaid, tuple(_conflict(pair, content) for pair, content in told if content.paths))


def _pairs(
    item: Installed, scan: Scan, by_record: Mapping[str, CondaPackage], known: Index, disk: Disk
) -> Iterator[_Pair]:
    """The packages that bring a distribution which is not conda's own, or that share files with it."""
    distribution = item.distribution
    # conda's Python packages bring a .dist-info themselves: one owner, not two
    if distribution.owner == "conda" or distribution.outside_prefix:
        return
    base = disk.base_of(scan.site)
    found = {where: _Pair(package, item, base) for where, package in by_record.items()
             if distribution.name in package.distributions}  # fmt: skip
    for path, sha256 in zip(item.paths, item.hashes, strict=False):  # without a RECORD, there are no hashes
        # byte code is made on this machine, and paths above site-packages are scripts, which both sides may write
        if path.endswith(".pyc") or path[0] in "./":
            continue
        where = known.owners.get(base + path)
        if where is not None:
            pair = found.setdefault(where, _Pair(by_record[where], item, base))
            pair.shared[base + path] = sha256
    yield from found.values()


def _content(pair: _Pair, installed: Records[BriefRecord], known: Index, disk: Disk) -> _Content:
    """Compare the modules and libraries that both list with the content on disk."""
    code = {path: sha256 for path, sha256 in pair.shared.items() if is_code(path) and path not in known.contested}
    if not code:
        return _Content()
    # the brief records leave out hashes, half of the time of reading conda-meta: one full record is read here
    record = conda_files.full(disk.prefix, pair.package.record)
    hashes = {
        path: conda_files.digest_of(item.installed_sha256) for path, item in record.files(installed.site_packages)
    }
    differing = [path for path, sha256 in code.items() if sha256 and hashes.get(path) not in {None, sha256}]
    found = {path: contents.digest(disk.prefix / path) for path in differing}
    condas = sum(found[path] == hashes[path] for path in differing)
    return _Content(tuple(differing), condas, sum(found[path] == code[path] for path in differing))


def _overlay(pair: _Pair, content: _Content, known: Index, disk: Disk) -> CondaOverlay:
    distribution = pair.item.distribution
    return CondaOverlay(
        package=pair.package.name,
        distribution=distribution.name,
        version=distribution.version,
        metadata_path=distribution.metadata_path,
        same=pair.same,
        shared=len(pair.shared),
        left=sum(1 for _ in _left(pair, known, disk)) if pair.same else 0,
        condas=content.condas,
    )


def _left(pair: _Pair, known: Index, disk: Disk) -> Iterator[str]:
    """Existing code that only conda lists, in import packages that the distribution provides too."""
    listed = {pair.base + path for path in pair.item.paths}
    tops = {path.partition("/")[0] for path in pair.item.paths if "/" in path}
    for path, _ in known.files[pair.package.record]:
        inside = path.startswith(pair.base) and path[len(pair.base) :].partition("/")[0] in tops
        if inside and is_code(path) and path not in listed and disk.size(path) is not None:
            yield path


def _conflict(pair: _Pair, content: _Content) -> FileConflict:
    return FileConflict(
        distributions=(pair.package.name, pair.item.distribution.name),
        conda=True,
        paths=content.paths[:SHOWN],
        count=len(content.paths),
        content_of=(content.condas, content.others),
    )


def unowned(known: Index, scans: Iterable[Scan], disk: Disk) -> int:
    """Number of files in site-packages, without byte code, that neither a record nor a RECORD lists."""
    sites = list(scans)
    bases = tuple({disk.base_of(scan.site) for scan in sites})
    there = {path for path in disk.sizes if path.startswith(bases) and not path.endswith(".pyc")}
    # the records first: they list nearly everything, and an empty rest spares the RECORDs below
    there.difference_update(known.owners)
    for scan in sites:
        there.difference_update(_recorded(scan, disk.base_of(scan.site)) if there else ())
    return len(there)


def _recorded(scan: Scan, base: str) -> Collection[str]:
    paths = (path for item in scan.installed for path in item.paths)
    return {base + path if path[0] not in "./" else os.path.normpath(base + path) for path in paths if path}
