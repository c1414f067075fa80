"""Reader of records of installed packages, ``conda-meta/*.json``, in the dialects of conda and py-rattler.

Format: https://docs.conda.io/projects/conda/en/stable/dev-guide/api/conda/models/records/ (PrefixRecord). The dialects
differ in noarch packages: conda lists their files by the paths inside the package (``site-packages/``,
``python-scripts/``), py-rattler by the paths in the prefix.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from envmedic.conda_meta import small_files

FOLDER = "conda-meta"


class BriefFile(msgspec.Struct, frozen=True, gc=False):
    """One file of a package without its hashes, which take half of the reading time."""

    path: str = msgspec.field(name="_path")
    """Path in the record; `BriefRecord.files` yields the path in the prefix."""
    path_type: str = "hardlink"
    """``hardlink``, ``softlink``, ``directory``, and for files that an installer generates ``pyc_file``,
    ``unix_python_entry_point``, …"""
    prefix_placeholder: str | None = None
    """Set where the prefix was written into the file, which changes its content."""
    file_mode: str | None = None
    """How it was written: ``text``; or ``binary``, padded to the same size."""
    size_in_bytes: int | None = None
    """Of the file in the package."""

    @property
    def names_prefix(self) -> bool:
        """Whether the installer wrote the path of the environment into it: in a placeholder, or as a script's Python."""
        return self.prefix_placeholder is not None or self.path_type == "unix_python_entry_point"

    @property
    def installed_size(self) -> int | None:
        """Size of the installed file in bytes; None if unknown."""
        # a prefix written into text changes the size; in a binary it is padded with zeros to the same size
        resized = self.prefix_placeholder is not None and self.file_mode != "binary"
        return None if resized or self.path_type != "hardlink" else self.size_in_bytes


class RecordedFile(BriefFile, frozen=True, gc=False):
    """One file of a package."""

    sha256: str | None = None
    """Of the file in the package."""
    sha256_in_prefix: str | None = None
    """Of the file as installed; for a symbolic link py-rattler writes one that is not the hash of its content."""

    @property
    def installed_sha256(self) -> str | None:
        """Hash of the installed content; None if unknown."""
        if self.path_type != "hardlink":
            return None
        return self.sha256_in_prefix or (None if self.prefix_placeholder else self.sha256)


class _BriefPaths(msgspec.Struct, frozen=True):
    paths: tuple[BriefFile, ...] = ()


class _Paths(_BriefPaths, frozen=True):
    paths: tuple[RecordedFile, ...] = ()


class BriefRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One installed package, without the hashes of its files."""

    name: str
    version: str
    build: str = ""
    build_number: int = 0
    channel: str | None = None
    subdir: str | None = None
    fn: str | None = None
    url: str | None = None
    md5: str | None = None
    sha256: str | None = None
    size: int | None = None
    noarch: str | bool | None = None
    depends: list[str] = []
    constrains: list[str] = []
    track_features: str | list[str] | None = None
    requested_spec: str | None = None
    requested_specs: list[str] | None = None
    python_site_packages_path: str | None = None
    """For Python itself: the directory of noarch modules, relative to the prefix (CEP 17)."""
    paths_data: _BriefPaths | None = None

    @property
    def of_python(self) -> bool:
        """Whether it is a ``noarch: python`` package, whose modules go to the site-packages of any Python."""
        return self.noarch == "python"

    def recorded(self) -> Sequence[BriefFile]:
        """Each file as the record writes it."""
        return self.paths_data.paths if self.paths_data is not None else ()

    def files(self, site_packages: str) -> Iterator[tuple[str, BriefFile]]:
        """Each file with its path in the prefix, relative; `site_packages` is that of `Records`."""
        entries = self.recorded()
        if self.of_python:
            return ((real_path(item.path, site_packages), item) for item in entries)
        return ((item.path, item) for item in entries)


class PrefixRecord(BriefRecord, frozen=True, kw_only=True):
    """One installed package."""

    extracted_package_dir: str | None = None
    listed: list[str] = msgspec.field(name="files", default=[])
    """Paths of its files, relative to the prefix."""
    paths_data: _Paths | None = None

    def recorded(self) -> Sequence[RecordedFile]:
        """Each file as the record writes it."""
        # old versions of conda wrote no paths_data, only the list of paths
        entries = self.paths_data.paths if self.paths_data is not None else ()
        return entries or [RecordedFile(path) for path in self.listed]

    if TYPE_CHECKING:

        def files(self, site_packages: str) -> Iterator[tuple[str, RecordedFile]]:
            """Each file with its real path, relative to the prefix; `site_packages` as `Records` has it."""


AnyRecord_co = TypeVar("AnyRecord_co", bound=BriefRecord, covariant=True)


class Records(msgspec.Struct, Generic[AnyRecord_co], frozen=True, kw_only=True):
    """All records of an environment."""

    packages: Mapping[str, AnyRecord_co] = {}
    """By the path of the record, relative to the prefix, sorted."""
    damaged: dict[str, str] = {}
    """Unreadable records by the same path, each with the reason."""
    site_packages: str = "lib/python3/site-packages"
    """Directory of the modules of noarch packages, from Python's record, relative to the prefix."""

    def named(self, name: str) -> AnyRecord_co | None:
        """Return the package with that name, or None."""
        return next((item for item in self.packages.values() if item.name == name), None)


_DECODER = msgspec.json.Decoder(PrefixRecord)
_BRIEF = msgspec.json.Decoder(BriefRecord)


def read(prefix: Path, *, python: str | None = None) -> Records[PrefixRecord]:
    """Return the records of the environment at `prefix`; none if it has no ``conda-meta``. Raises OSError.

    `python` is the version to assume if the record of Python is missing or damaged.
    """
    return _read(prefix, decode, python)


def read_brief(prefix: Path, *, python: str | None = None) -> Records[BriefRecord]:
    """Return the same as `read`, without the hashes of files."""
    return _read(prefix, _decode_brief, python)


def _read(prefix: Path, reader: Callable[[bytes], AnyRecord_co], python: str | None) -> Records[AnyRecord_co]:
    found: dict[str, AnyRecord_co] = {}
    damaged: dict[str, str] = {}
    try:
        # names only, in one call: pathlib makes an object for each of several hundred records
        names = sorted(name for name in os.listdir(prefix / FOLDER) if name.endswith(".json"))
    except (FileNotFoundError, NotADirectoryError):
        names = []  # no conda environment; any other error is raised, or all packages would seem missing
    for where in (f"{FOLDER}/{name}" for name in names):
        # one damaged record must not hide the others: the damage is a fact for the diagnosis
        try:
            found[where] = reader(small_files.read(prefix / where) or b"")
        except (OSError, ValueError) as error:
            damaged[where] = str(error)
    return Records(packages=found, damaged=damaged, site_packages=_site_packages(found.values(), python))


def _decode_brief(data: bytes) -> BriefRecord:
    try:
        record = _BRIEF.decode(data)
    except RecursionError:
        return decode(data)  # raises the ValueError that describes it
    # without paths_data, the full record knows the files from its list of paths
    return record if record.recorded() else decode(data)


def decode(data: bytes) -> PrefixRecord:
    """Decode one record. Raises ValueError with the position of the damage."""
    try:
        return _DECODER.decode(data)
    except RecursionError as error:
        raise ValueError("nested too deeply to be a record") from error


def real_path(recorded: str, site_packages: str) -> str:
    """Return the path in the prefix, relative to it, of a file of a ``noarch: python`` package."""
    # conda's mapping (get_python_noarch_target_path); paths by py-rattler begin with lib/ or bin/ and stay the same
    if recorded.startswith("site-packages/"):
        return site_packages + recorded[len("site-packages") :]
    if recorded.startswith("python-scripts/"):
        return "bin/" + recorded[len("python-scripts/") :]
    return recorded


def mapped(document: dict[str, Any], site_packages: str) -> dict[str, Any]:
    """Return a record (decoded JSON) with every path of a noarch package as it is in the prefix.

    Returns the same object if there is nothing to map.
    """
    # py-rattler unlinks by these paths; with conda's it would find no files and leave all of them behind
    paths = document.get("paths_data") or {}
    if document.get("noarch") != "python" or not paths.get("paths"):
        return document
    entries = [item | {"_path": real_path(item["_path"], site_packages)} for item in paths["paths"]]
    return document | {"paths_data": paths | {"paths": entries}}


def _site_packages(found: Iterable[BriefRecord], python: str | None) -> str:
    record = next((item for item in found if item.name == "python"), None)
    if record is not None and record.python_site_packages_path:
        return record.python_site_packages_path.strip("/")
    # a damaged record of Python must not make every noarch file look missing: fall back to the interpreter's version
    match = re.match(r"\d+\.\d+", (record.version if record is not None else python) or "")
    return f"lib/python{match[0]}/site-packages" if match else "lib/python3/site-packages"
