"""Comparison of installed files with the RECORD of their distribution.

A mismatch alone is no fault: people edit modules, strip libraries, and delete tests and headers to save
space. A missing file counts only where a program needs it, and a file of another size is examined.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from operator import eq, not_
from pathlib import Path
from typing import NamedTuple

import msgspec

from envmedic.model.facts import Distribution, DistributionFiles, FileConflict
from envmedic.probe.metadata import recorded_size
from envmedic.probe.packages import contents
from envmedic.probe.packages.distributions import Installed, Scan

SHOWN = 20
_SPARE_FOLDERS = frozenset({
    "tests", "test", "docs", "doc", "examples", "example", "benchmarks", "include", "share", "man", "etc",
})  # fmt: skip
"""Directories of which nothing is needed at run time."""
_SPARE_SUFFIXES = (
    ".pyi", ".typed", ".pxd", ".pyx", ".pxi", ".c", ".cc", ".cpp", ".cu", ".h", ".hh", ".hpp", ".cuh", ".inl", ".inc",
    ".a", ".lib", ".exe", ".dll", ".pyd", ".dylib", ".bat", ".ps1", ".cmake", ".pc", ".md", ".rst", ".txt", ".html",
    ".map", ".pth", ".pdb", ".f", ".f90", ".sh", ".license", ".in", ".toml", ".cfg",
)  # fmt: skip
"""Files that no program on Linux needs at run time, and hooks that people switch off by deleting them."""
_LICENSES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "README", "AUTHORS", "CHANGELOG", "py.typed")


class RecordCheck(msgspec.Struct, frozen=True):
    """Differences between the RECORD files and the disk."""

    files: tuple[DistributionFiles, ...] = ()
    conflicts: tuple[FileConflict, ...] = ()


class _Row(NamedTuple):
    """One entry of a RECORD."""

    path: str
    """As the RECORD writes it, relative to site-packages."""
    name: str
    """Relative to the prefix."""
    sha256: str
    size: str


class _Comparison(msgspec.Struct):
    """The comparison of one distribution: its RECORD by columns, without byte code, and the differences."""

    distribution: Distribution
    paths: tuple[str, ...]
    names: tuple[str, ...]
    """The same, relative to the prefix."""
    hashes: tuple[str, ...]
    sizes: tuple[str, ...]
    missing: list[_Row] = msgspec.field(default_factory=list)
    other: list[tuple[_Row, int]] = msgspec.field(default_factory=list)
    """Entries of another size than recorded, with the size on disk."""
    altered: list[_Row] = msgspec.field(default_factory=list)
    """Entries of the recorded size with another hash; filled by a deep comparison only."""

    @property
    def recorded(self) -> int:
        """Entries."""
        return len(self.paths)

    def row(self, place: int) -> _Row:
        """One entry."""
        return _Row(self.paths[place], self.names[place], self.hashes[place], self.sizes[place])


class _Contested(NamedTuple):
    """A path that two distributions list with different content."""

    name: str
    first: str
    second: str
    """The hashes that they list."""


class Disk(msgspec.Struct, frozen=True):
    """The files of a prefix."""

    prefix: Path
    """With symbolic links resolved."""
    sizes: Mapping[str, int]
    """Of regular files by their path relative to it."""

    def base_of(self, site: Path) -> str:
        """Prefix that turns a path of RECORD into one relative to the environment."""
        return os.path.relpath(os.path.realpath(site), self.prefix) + "/"

    def size(self, name: str) -> int | None:
        """Bytes of a file, following symbolic links; None when it does not exist."""
        # the walk of the prefix recorded regular files only: links and files outside need a stat of their own
        known = self.sizes.get(name)
        if known is not None:
            return known
        try:
            status = os.stat(self.prefix / name)  # noqa: PTH116  # a third of the time
            # a directory in the place of a file is not the file
            return None if stat.S_ISDIR(status.st_mode) else status.st_size
        except (OSError, ValueError):
            return None


def compare(
    scans: Iterable[Scan],
    disk: Disk,
    *,
    elsewhere: Callable[[Distribution], bool] = lambda item: item.owner == "conda",
    deep: bool = False,
) -> RecordCheck:
    """Compare every RECORD inside the prefix with the disk; `deep` hashes every file, not only the first modules of imports.

    Those `elsewhere`, conda's packages, are reported by `conda_files` instead: their RECORD lists files that conda removes.
    """
    held: list[_Comparison] = []
    shared: dict[tuple[int, int], list[_Contested]] = {}
    owners: dict[str, tuple[int, str]] = {}
    for scan in scans:
        for item in scan.installed:
            # an egg-info has no hashes or sizes: its installed-files.txt is a list of names
            if item.sizes and item.distribution.metadata_path.endswith(".dist-info"):
                held.append(_comparison(item, disk.base_of(scan.site)))
                _look_up(len(held) - 1, held[-1], disk.sizes, owners, shared)
    _hash_contents(held, disk, everything=deep)
    contested = frozenset(item.name for items in shared.values() for item in items)
    doubled = Counter(item.distribution.name for item in held)
    # conda's packages took part up to here, since a wheel can overwrite their files (a conflict)
    own = [item for item in held if not elsewhere(item.distribution)]
    reports = ((_report(item, disk, contested), doubled[item.distribution.name] > 1) for item in own)
    # two metadata entries of one name: both reports stay, since the counts show whose files are on disk
    told = tuple(
        report for report, twice in reports if twice or report.missing_count or report.cut_off or report.changed_count
    )
    return RecordCheck(told, tuple(_conflicts(held, shared, disk)))


def _comparison(item: Installed, base: str) -> _Comparison:
    paths, hashes, sizes = item.paths, item.hashes, item.sizes
    # most RECORDs need no filter; one search of the joined text is cheaper than a test of every path
    text = "\n".join(item.paths)
    # virtualenv lists the directories of byte code, too
    if "__pycache__" in text or ".pyc" in text or ".." in text or text.startswith("/") or "\n/" in text:
        kept = [
            not path.endswith((".pyc", "__pycache__", "__pycache__/")) and _inside(base, path) for path in item.paths
        ]
        paths, hashes, sizes = (tuple(compress(column, kept)) for column in (paths, hashes, sizes))
    names = [base + path if path[0] not in "./" else _normal(base, path) for path in paths]
    return _Comparison(item.distribution, paths, tuple(names), hashes, sizes)


def _look_up(
    index: int,
    item: _Comparison,
    sizes: Mapping[str, int],
    owners: dict[str, tuple[int, str]],
    shared: dict[tuple[int, int], list[_Contested]],
) -> None:
    """Look up every entry of one RECORD and note what differs, and which earlier distribution lists the same path."""
    names = item.names
    # an environment has some thirty thousand entries, nearly all as recorded: `map` and `compress` keep the loop
    # over them out of Python code, and rows are built for the differing ones alone
    there = list(map(sizes.get, names))
    same = map(eq, map(str, there), item.sizes)
    for place in compress(range(len(names)), map(not_, same)):
        _differs(item, item.row(place), there[place])
    # fast path: no path of this RECORD is listed twice or by an earlier distribution
    if len(set(names)) == len(names) and owners.keys().isdisjoint(names):
        owners.update(zip(names, zip(repeat(index), item.hashes), strict=True))
        return
    for name, sha256 in zip(names, item.hashes, strict=True):
        first, content = owners.setdefault(name, (index, sha256))
        if content != sha256 and content and sha256:
            shared.setdefault((first, index), []).append(_Contested(name, content, sha256))


def _differs(item: _Comparison, row: _Row, there: int | None) -> None:
    if there is None:
        item.missing.append(row)
    elif row.size:
        item.other.append((row, there))


def _inside(base: str, path: str) -> bool:
    """Whether a path of a RECORD stays inside the prefix, judged by its text alone; paths outside are ignored."""
    if path[0] != "/" and ".." not in path:
        return True
    return not _normal(base, path).startswith(("/", "../")) and "/../" not in path.lstrip("./")


def _normal(base: str, path: str) -> str:
    return path if path.startswith("/") else os.path.normpath(base + path)


def _hash_contents(held: Iterable[_Comparison], disk: Disk, *, everything: bool) -> None:
    """Hash files that have the recorded size, several at a time: all, or the modules that imports read first."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for item in held:
            known = {row.name for row in item.missing} | {row.name for row, _ in item.other}
            rows = map(item.row, range(item.recorded) if everything else _first_modules(item))
            asked = [row for row in rows if row.sha256.startswith("sha256=") and row.name not in known]
            found = pool.map(contents.digest, (disk.prefix / row.name for row in asked))
            item.altered += [row for row, sha256 in zip(asked, found, strict=True) if sha256 not in {None, row.sha256}]


def _first_modules(item: _Comparison) -> Iterator[int]:
    """The places of the modules that an import of its packages reads first."""
    names = item.distribution.import_names
    wanted = {f"{name}/__init__.py" for name in names} | {f"{name}.py" for name in names}
    found = wanted.intersection(item.paths)
    return (item.paths.index(path) for path in found)


def _report(item: _Comparison, disk: Disk, contested: frozenset[str]) -> DistributionFiles:
    """The report on one distribution. Contested files are reported as conflicts, not as its damage."""
    absent, other = _asked(item, disk)
    missing = [row.name for row in absent if _matters(row, disk)]
    cut = [
        row.name
        for row, size in other
        if _own(row, contested) and contents.cut_off(disk.prefix / row.name, size, recorded_size(row.size))
    ]
    cut += [row.name for row in item.altered if _own(row, contested) and contents.is_library(row.path)]
    told = {*cut, *contested}
    changed = [row.name for row in (*(row for row, _ in other), *item.altered) if _own(row, told)]
    return DistributionFiles(
        distribution=item.distribution.name,
        version=item.distribution.version,
        metadata_path=item.distribution.metadata_path,
        recorded=item.recorded,
        matching=item.recorded - len(absent) - len(other) - len(item.altered),
        missing=tuple(missing[:SHOWN]),
        missing_count=len(missing),
        cut_off=tuple(cut),
        changed=tuple(changed[:SHOWN]),
        changed_count=len(changed),
    )


def _own(row: _Row, others: Collection[str]) -> bool:
    """Whether only this distribution lists the file, and it is no metadata or script: installers rewrite those."""
    return row.name not in others and row.path[0] not in "./" and not _metadata(row.path)


def _asked(item: _Comparison, disk: Disk) -> tuple[list[_Row], list[tuple[_Row, int]]]:
    """Absent entries, and those of another size, after a `stat` of paths that the walk did not list (links)."""
    absent: list[_Row] = []
    other = list(item.other)
    for row in item.missing:
        size = disk.size(row.name)
        if size is None:
            absent.append(row)
        elif row.size and str(size) != row.size:
            other.append((row, size))
    return absent, other


def _matters(row: _Row, disk: Disk) -> bool:
    """Whether the absence of a file can break a program. Scripts and data files outside site-packages are ignored."""
    if row.size == "0" or row.path[0] in "./":
        return False
    if _metadata(row.path):
        # importlib.metadata finds plugins by it; other metadata files matter to installers only
        return row.path.endswith("/entry_points.txt")
    return needed(row.path, disk, name=row.name)


def needed(path: str, disk: Disk, *, name: str | None = None) -> bool:
    """Whether a program needs a file, by its path; `name` is its path relative to the prefix where that differs."""
    *folders, file = path.split("/")
    if not _SPARE_FOLDERS.isdisjoint(folders) or file.endswith(_SPARE_SUFFIXES) or file.startswith(_LICENSES):
        return False
    # a .pyc beside the deleted source is imported in its place (images that ship without sources)
    return not (file.endswith(".py") and disk.size(f"{name or path}c") is not None)


def _metadata(path: str) -> bool:
    return ".dist-info/" in path


def _conflicts(
    held: Sequence[_Comparison], shared: Mapping[tuple[int, int], list[_Contested]], disk: Disk
) -> Iterator[FileConflict]:
    """Pairs of differently named distributions that both bring code under one path."""
    for (one, two), items in shared.items():
        names = (held[one].distribution.name, held[two].distribution.name)
        code = [item for item in items if is_code(item.name)]
        if code and names[0] != names[1]:
            # the hash on disk shows which distribution was installed last, and so which one is broken
            found = [contents.digest(disk.prefix / item.name) for item in code[:SHOWN]]
            yield FileConflict(
                distributions=names,
                paths=tuple(item.name for item in code[:SHOWN]),
                count=len(code),
                content_of=(
                    sum(item.first == sha256 for item, sha256 in zip(code, found, strict=False)),
                    sum(item.second == sha256 for item, sha256 in zip(code, found, strict=False)),
                ),
            )


def is_code(name: str) -> bool:
    """Whether a path is code that is imported or loaded; sloppy wheels also share tests and licences."""
    *folders, file = name.split("/")
    return _SPARE_FOLDERS.isdisjoint(folders) and (file.endswith(".py") or contents.is_library(file))
