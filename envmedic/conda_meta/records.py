"""Records of installed packages, ``conda-meta/*.json``, as conda and as py-rattler write them.

Format: https://docs.conda.io/projects/conda/en/stable/dev-guide/api/conda/models/records/ (PrefixRecord). The two
differ in noarch packages: conda lists their files under ``site-packages/`` and ``python-scripts/``, as they stand in
the package, py-rattler where they lie in the prefix.
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
    """One file of a package, without its hashes: half of the time that reading takes."""

    path: str = msgspec.field(name="_path")
    """As the record writes it; `BriefRecord.files` has the real one."""
    path_type: str = "hardlink"
    """``hardlink``, ``softlink``, ``directory``, and for what an installer makes itself ``pyc_file``,
    ``unix_python_entry_point``, …"""
    prefix_placeholder: str | None = None
    """Set where the prefix was written into the file, which changes its content."""
    file_mode: str | None = None
    """How it was written: ``text``; or ``binary``, padded to the same size."""
    size_in_bytes: int | None = None
    """Of the file in the package."""

    @property
    def installed_size(self) -> int | None:
        """Its size as installed, None where none is known."""
        resized = self.prefix_placeholder is not None and self.file_mode != "binary"
        return None if resized or self.path_type != "hardlink" else self.size_in_bytes


class RecordedFile(BriefFile, frozen=True, gc=False):
    """One file of a package."""

    sha256: str | None = None
    """Of the file in the package."""
    sha256_in_prefix: str | None = None
    """Of the file as installed; py-rattler writes it for symbolic links too, of something else than their content."""

    @property
    def installed_sha256(self) -> str | None:
        """Hash of its content as installed, None where none is known."""
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
    """Of a Python: where noarch packages put their modules, relative to the prefix (CEP 17)."""
    paths_data: _BriefPaths | None = None

    @property
    def of_python(self) -> bool:
        """Whether it is a ``noarch: python`` package, whose modules go to the site-packages of any Python."""
        return self.noarch == "python"

    def recorded(self) -> Sequence[BriefFile]:
        """Each file as the record writes it."""
        return self.paths_data.paths if self.paths_data is not None else ()

    def files(self, site_packages: str) -> Iterator[tuple[str, BriefFile]]:
        """Each file with its real path, relative to the prefix; `site_packages` as `Records` has it."""
        entries = self.recorded()
        if self.of_python:
            return ((real_path(item.path, site_packages), item) for item in entries)
        return ((item.path, item) for item in entries)


class PrefixRecord(BriefRecord, frozen=True, kw_only=True):
    """One installed package."""

    extracted_package_dir: str | None = None
    listed: list[str] = msgspec.field(name="files", default=[])
    """Where its files lie, relative to the prefix."""
    paths_data: _Paths | None = None

    def recorded(self) -> Sequence[RecordedFile]:
        """Each file as the record writes it; that of an old conda has no details, and tells a file by its path only."""
        entries = self.paths_data.paths if self.paths_data is not None else ()
        return entries or [RecordedFile(path) for path in self.listed]

    if TYPE_CHECKING:

        def files(self, site_packages: str) -> Iterator[tuple[str, RecordedFile]]:
            """Each file with its real path, relative to the prefix; `site_packages` as `Records` has it."""


AnyRecord_co = TypeVar("AnyRecord_co", bound=BriefRecord, covariant=True)


class Records(msgspec.Struct, Generic[AnyRecord_co], frozen=True, kw_only=True):
    """What ``conda-meta`` holds of records."""

    packages: Mapping[str, AnyRecord_co] = {}
    """By the record's file, relative to the prefix, sorted."""
    damaged: dict[str, str] = {}
    """Records that cannot be read, by the same, with the reason."""
    site_packages: str = "lib/python3/site-packages"
    """Where the modules of noarch packages lie, by the record of Python, relative to the prefix."""

    def named(self, name: str) -> AnyRecord_co | None:
        """The package of that name, or None."""
        return next((item for item in self.packages.values() if item.name == name), None)


_DECODER = msgspec.json.Decoder(PrefixRecord)
_BRIEF = msgspec.json.Decoder(BriefRecord)


def read(prefix: Path, *, python: str | None = None) -> Records[PrefixRecord]:
    """The records of the environment at `prefix`; none where it has no ``conda-meta``.

    `python` is the version to go by where no record of a Python is there, or where it is damaged.
    """
    return _read(prefix, decode, python)


def read_brief(prefix: Path, *, python: str | None = None) -> Records[BriefRecord]:
    """As `read`, without the hashes of files."""
    return _read(prefix, _decode_brief, python)


def _read(prefix: Path, reader: Callable[[bytes], AnyRecord_co], python: str | None) -> Records[AnyRecord_co]:
    found: dict[str, AnyRecord_co] = {}
    damaged: dict[str, str] = {}
    for where in (f"{FOLDER}/{name}" for name in _names(prefix / FOLDER)):
        record = _attempt(prefix / where, reader)
        if isinstance(record, str):
            damaged[where] = record
        else:
            found[where] = record
    return Records(packages=found, damaged=damaged, site_packages=_site_packages(found.values(), python))


def _attempt(path: Path, reader: Callable[[bytes], AnyRecord_co]) -> AnyRecord_co | str:
    """One record, or why it cannot be read."""
    try:
        return reader(small_files.read(path) or b"")
    except (OSError, ValueError) as error:
        return str(error)


def _decode_brief(data: bytes) -> BriefRecord:
    try:
        record = _BRIEF.decode(data)
    except RecursionError:  # told by the other reader
        return decode(data)
    return record if record.recorded() else decode(data)


def _names(folder: Path) -> list[str]:
    """Files of records. Raises OSError when the directory is there and cannot be listed."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json"))  # noqa: PTH208  # names only
    except (FileNotFoundError, NotADirectoryError):
        return []


def decode(data: bytes) -> PrefixRecord:
    """Read one record. Raises ValueError (msgspec's, with the place) when it is damaged."""
    try:
        return _DECODER.decode(data)
    except RecursionError as error:
        raise ValueError("nested too deeply to be a record") from error


def real_path(recorded: str, site_packages: str) -> str:
    """Where a file of a ``noarch: python`` package lies, relative to the prefix.

    conda's own mapping: ``site-packages/…`` to the site-packages of the environment's Python, ``python-scripts/…`` to
    ``bin/…``, anything else as it is.
    """
    if recorded.startswith("site-packages/"):
        return site_packages + recorded[len("site-packages") :]
    if recorded.startswith("python-scripts/"):
        return "bin/" + recorded[len("python-scripts/") :]
    return recorded


def mapped(document: dict[str, Any], site_packages: str) -> dict[str, Any]:
    """A record, as decoded JSON, with every path of a noarch package where it really lies.

    For py-rattler, which removes by these paths. Returns the same object where there is nothing to map.
    """
    paths = document.get("paths_data") or {}
    if document.get("noarch") != "python" or not paths.get("paths"):
        return document
    entries = [item | {"_path": real_path(item["_path"], site_packages)} for item in paths["paths"]]
    return document | {"paths_data": paths | {"paths": entries}}


def _site_packages(found: Iterable[BriefRecord], python: str | None) -> str:
    record = next((item for item in found if item.name == "python"), None)
    if record is not None and record.python_site_packages_path:
        return record.python_site_packages_path.strip("/")
    match = re.match(r"\d+\.\d+", (record.version if record is not None else python) or "")
    return f"lib/python{match[0]}/site-packages" if match else "lib/python3/site-packages"
