"""The conda part of an environment: packages of `conda-meta`, overlays by pip or uv, and unowned files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from envmedic.conda_meta import history, packages, pins_and_marks, records
from envmedic.conda_meta.records import BriefRecord, Records
from envmedic.model.conda import CondaEnvironment, CondaOverlay, CondaPackage
from envmedic.model.facts import Distribution, DistributionFiles, FileConflict
from envmedic.probe.conda import conda_files, conda_overlays
from envmedic.probe.packages.distributions import Installed, Scan
from envmedic.probe.packages.record_check import Disk
from envmedic.probe.readable import read_text

_NOT_CONDA = frozenset({"pip", "uv"})


@dataclass(frozen=True)
class Observed:
    """The conda part of an environment, with damaged files and conflicts."""

    environment: CondaEnvironment
    files: tuple[DistributionFiles, ...]
    conflicts: tuple[FileConflict, ...]


@dataclass(frozen=True)
class Conda:
    """The records of a conda prefix, and their packages."""

    prefix: Path
    records: Records[BriefRecord]
    packages: tuple[CondaPackage, ...]

    def settle_owners(self, scans: Sequence[Scan]) -> None:
        """Set the owner of every distribution by the records, which outrank its own metadata.

        Metadata that conda lists belongs to conda, unless pip or uv rewrote its INSTALLER later.
        """
        listed = _installer_sizes(self)
        for scan in scans:
            scan.installed[:] = [_settled(item, listed, self.prefix) for item in scan.installed]

    def records_of(self, item: Distribution) -> bool:
        """Whether a distribution of conda's has a record, or may have one of those that cannot be read.

        A transaction that was killed leaves files without a record: then only the distribution's own list tells which lack.
        """
        known = any(item.name in package.distributions for package in self.packages)
        return item.owner == "conda" and (known or bool(self.records.damaged))

    def owners(self, paths: Collection[str]) -> dict[str, str]:
        """The packages of files that records list, by the path relative to the prefix."""
        return {
            path: record.name
            for record in self.records.packages.values()
            for path, _ in record.files(self.records.site_packages)
            if path in paths
        }

    def observe(self, scans: Sequence[Scan], disk: Disk, *, deep: bool = False) -> Observed:
        """Compare the records with the disk; `settle_owners` must have seen `scans`. `deep` hashes every file."""
        known = conda_files.index(self.records)
        overlays = conda_overlays.find(self.records, self.packages, known, scans, disk)
        # pip or uv removed files of these packages when it replaced them: missing ones are no damage
        replaced = {item.package for item in overlays.overlaid if item.same}
        passed_over = {item.record for item in self.packages if item.name in replaced}
        return Observed(
            environment=_environment(self, overlays.overlaid, conda_overlays.unowned(known, scans, disk)),
            files=conda_files.compare(self.records, disk, known, passed_over, deep=deep),
            conflicts=overlays.conflicts,
        )


def read_conda(prefix: Path, version: str | None) -> Conda:
    """Read the records in `prefix`; `version`, of its Python, decides the site-packages of noarch files."""
    found = records.read_brief(prefix, python=version)
    return Conda(prefix, found, packages.packages(found))


def _installer_sizes(conda: Conda) -> dict[str, int | None]:
    """Metadata directories and files that conda lists → the size of INSTALLER in them, None where it lists none."""
    names = {item.record for item in conda.packages if item.distributions}
    found: dict[str, int | None] = {}
    for where in names:
        for path, item in conda.records.packages[where].files(conda.records.site_packages):
            folder, _, file = path.rpartition("/")
            if file == "INSTALLER":
                found[folder] = item.installed_size
            elif file in {"METADATA", "PKG-INFO"}:
                found.setdefault(folder, None)
            elif file.endswith(".egg-info"):
                found[path] = None
    return found


def _settled(item: Installed, listed: dict[str, int | None], prefix: Path) -> Installed:
    where = item.distribution.metadata_path
    if where not in listed:
        return item
    size = listed[where]
    word = read_text(prefix / where / "INSTALLER")
    known = word is not None and size is not None
    # the size shows a rewrite: "conda", "pip" and "uv" differ in length, and brief records have no hashes
    own = len((word or "").encode()) == size if known else item.distribution.owner not in _NOT_CONDA
    distribution = item.distribution
    if not own or distribution.owner == "conda":
        return item
    origin = msgspec.structs.replace(distribution.origin, kind="conda")
    changed = msgspec.structs.replace(distribution, owner="conda", origin=origin)
    return Installed(changed, item.paths, item.hashes, item.sizes)


def _environment(conda: Conda, overlaid: tuple[CondaOverlay, ...], unowned: int) -> CondaEnvironment:
    text = read_text(conda.prefix / history.PATH)
    revisions = history.read(text or "")
    installed = [item.name for item in conda.packages]
    return CondaEnvironment(
        packages=conda.packages,
        damaged=tuple(conda.records.damaged),
        requested=tuple(history.specs_in_force(revisions, installed).values()),
        history="missing" if text is None else "present" if revisions else "empty",
        pinned=pins_and_marks.pins(read_text(conda.prefix / pins_and_marks.PINNED) or ""),
        made_by=pins_and_marks.made_by(conda.prefix, revisions),
        overlaid=overlaid,
        unowned=unowned,
    )
