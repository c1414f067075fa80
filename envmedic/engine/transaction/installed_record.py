"""Running an installer in the clone, and what it left of a distribution compared with its RECORD and its wheel.

uv ends with 0 where the last write of a RECORD fails (EIO, a full disk): the RECORD is then empty, or cut off in the
middle, and nothing could remove the distribution any more.
"""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.utils import canonicalize_name, canonicalize_version

from envmedic.engine.clone.listed_files import site_packages
from envmedic.engine.clone.shared_links import unshare
from envmedic.engine.store.workspace import Workplace, run
from envmedic.engine.transaction import shared_files
from envmedic.errors import InstallerError
from envmedic.model.plan import Artifact, Install, Purge

_SUFFIX = ".dist-info"


def remove_or_install(step: Purge | Install, place: Workplace) -> None:
    """Run the installer's commands for `step` in the clone, and look at what they installed.

    Raises InstallerError where one fails or leaves a distribution in parts, PreflightError for files that clone and
    original share, OSError.
    """
    unshare(step, place.tree, place.runner.python.parent.parent)
    with shared_files.kept(place):
        for argv in place.installer.commands(step, str(place.runner.python)):
            run(argv, place)
    if isinstance(step, Install):
        require_whole(step.artifacts, place.tree)


def require_whole(artifacts: Sequence[Artifact], tree: Path) -> None:
    """Compare what was just installed in the clone `tree` with its RECORD, and the RECORD with the wheel's own.

    Raises InstallerError for a RECORD that is missing, cut off or lacks rows, and for a file of another size than any
    of these distributions records; OSError.
    """
    sites = site_packages(Path(os.path.realpath(tree)))
    found = [_Installed.of(artifact, sites) for artifact in artifacts]
    sizes: dict[str, set[int]] = {}  # distributions that claim the same file write over each other
    for item in found:
        for path, size in item.sizes():
            sizes.setdefault(path, set()).add(size)
    for item in found:
        item.require_sizes(sizes)


@dataclass
class _Installed:
    """A distribution after its installation."""

    artifact: Artifact
    site: str
    record: Path
    rows: list[list[str]]
    members: Mapping[str, int] | None
    """Size of each file of the wheel; None where the wheel cannot be read here."""
    listed: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, artifact: Artifact, sites: Iterable[str]) -> _Installed:
        """Find and read its RECORD. Raises InstallerError."""
        record = _record_of(artifact, sites)
        if record is None:
            raise _refused(artifact, f"no metadata of {artifact.name} {artifact.version} is in site-packages")
        if not record.is_file():
            raise _refused(artifact, f"there is no {_shown(record)}")
        text = record.read_text(encoding="utf-8", errors="surrogateescape")
        try:
            rows = [row for row in csv.reader(text.splitlines(), strict=True) if row]
        except csv.Error:
            rows = []
        if not text.endswith("\n") or any(len(row) != 3 for row in rows):  # noqa: PLR2004  # path, hash, size
            raise _refused(artifact, f"{_shown(record)} is {'cut off' if text else 'empty'}")
        wheel = _Wheel.read(Path(artifact.local_path))
        listed = {row[0] for row in rows}
        lacking = sorted({f"{record.parent.name}/METADATA", *(wheel.listed if wheel else ())} - listed)
        if lacking:
            raise _refused(artifact, f"{_shown(record)} does not list {lacking[0]}")
        site = os.fspath(record.parent.parent)
        return cls(artifact, site, record, rows, wheel.members if wheel else None)

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Path and size of each file that the RECORD gives the size of."""
        for name, _, size in self.rows:
            if size.isdecimal():
                yield os.path.normpath(os.path.join(self.site, name)), int(size)  # noqa: PTH118  # thousands of them

    def require_sizes(self, sizes: Mapping[str, set[int]]) -> None:
        """Raise InstallerError for a file whose size is neither in `sizes` nor that of the wheel's."""
        for path, size in self.sizes():
            try:
                there: int | None = os.lstat(path).st_size
            except FileNotFoundError:
                there = None
            if there in sizes[path]:
                continue
            # a wheel whose own RECORD is wrong installs all the same
            if self.members is not None and self.members.get(os.path.relpath(path, self.site)) == there:
                continue
            told = "is missing" if there is None else f"has {there} bytes"
            raise _refused(
                self.artifact, f"{os.path.relpath(path, self.site)} {told}; {_shown(self.record)} says {size}"
            )


@dataclass(frozen=True)
class _Wheel:
    members: Mapping[str, int]
    listed: frozenset[str]
    """What its RECORD lists for site-packages."""

    @classmethod
    def read(cls, path: Path) -> _Wheel | None:
        """A wheel; None where there is none or it is damaged, which its installer has refused."""
        if not path.is_file():
            return None
        with zipfile.ZipFile(path) as archive:
            members = {item.filename: item.file_size for item in archive.infolist() if not item.is_dir()}
            record = next(
                (name for name in members if name.count("/") == 1 and name.endswith(f"{_SUFFIX}/RECORD")), None
            )
            text = archive.read(record).decode(errors="surrogateescape") if record else ""
        names = (row[0] for row in csv.reader(text.splitlines()) if row)
        return cls(members, frozenset(name for name in names if not name.partition("/")[0].endswith(".data")))


def _record_of(artifact: Artifact, sites: Iterable[str]) -> Path | None:
    version = canonicalize_version(artifact.version)
    for site in sites:
        for info in sorted(Path(site).glob(f"*{_SUFFIX}")):
            name, _, found = info.name.removesuffix(_SUFFIX).partition("-")
            if canonicalize_name(name) == canonicalize_name(artifact.name) and canonicalize_version(found) == version:
                return info / "RECORD"
    return None


def _shown(record: Path) -> str:
    return f"{record.parent.name}/{record.name}"


def _refused(artifact: Artifact, cause: str) -> InstallerError:
    return InstallerError(
        f"{artifact.name} {artifact.version} was not installed whole, though its installer reported success",
        cause=f"{cause}: a write that failed was not reported, as happens on a disk that is full or fails",
        hint="Look for errors of the disk (`df`, `dmesg`), then repair again",
    )
