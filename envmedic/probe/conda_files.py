"""The files of conda packages, by their records in ``conda-meta``, held against the disk.

Format: https://docs.conda.io/projects/conda/en/latest/dev-guide/api/conda/core/prefix_data/ ("PrefixRecord").
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from envmedic.model.facts import DistributionFiles
from envmedic.probe import contents
from envmedic.probe.files import names, read_bytes
from envmedic.probe.metadata import normalise
from envmedic.probe.records import SHOWN, Disk, needed


class _Path(msgspec.Struct):
    """One file of a package."""

    path: str = msgspec.field(name="_path")
    path_type: str = "hardlink"
    prefix_placeholder: str | None = None
    """Set where the prefix was written into the file, which changes its size."""
    size_in_bytes: int | None = None


class _Paths(msgspec.Struct):
    paths: list[_Path] = []


class _Record(msgspec.Struct):
    name: str
    version: str
    paths_data: _Paths | None = None


_DECODER = msgspec.json.Decoder(_Record)


def compare(prefix: Path, disk: Disk) -> tuple[DistributionFiles, ...]:
    """Hold every record against the disk; packages with all their files are left out, as are damaged records."""
    found = (_held(record, path, disk) for path, record in _records(prefix))
    return tuple(item for item in found if item.missing_count or item.cut_off)


def _records(prefix: Path) -> Iterator[tuple[str, _Record]]:
    for name in names(prefix / "conda-meta"):
        if name.endswith(".json"):
            try:
                yield f"conda-meta/{name}", _DECODER.decode(read_bytes(prefix / "conda-meta" / name) or b"")
            except msgspec.DecodeError:  # another format of conda's, or damaged: conda itself refuses it
                continue


def _held(record: _Record, where: str, disk: Disk) -> DistributionFiles:
    listed = [item for item in (record.paths_data or _Paths()).paths if not item.path.endswith(".pyc")]
    sizes = {item.path: disk.size(item.path) for item in listed}
    missing = [item.path for item in listed if sizes[item.path] is None and _matters(item, disk)]
    other = [item for item in listed if _other(item, sizes[item.path])]
    cut = [item.path for item in other if _ends_early(item, sizes[item.path], disk)]
    return DistributionFiles(
        distribution=normalise(record.name),
        version=record.version,
        metadata_path=where,
        recorded=len(listed),
        matching=len(listed) - sum(size is None for size in sizes.values()) - len(other),
        missing=tuple(missing[:SHOWN]),
        missing_count=len(missing),
        cut_off=tuple(cut),
    )


def _matters(item: _Path, disk: Disk) -> bool:
    """Whether a program can miss it: modules and libraries, not what belongs to a site-packages' metadata."""
    if item.size_in_bytes == 0 or item.path_type not in {"hardlink", "softlink"}:
        return False
    code = item.path.endswith(".py") or contents.is_library(item.path)
    return code and needed(item.path, disk)


def _other(item: _Path, size: int | None) -> bool:
    fixed = item.path_type == "hardlink" and item.prefix_placeholder is None and item.size_in_bytes is not None
    return fixed and size is not None and size != item.size_in_bytes


def _ends_early(item: _Path, size: int | None, disk: Disk) -> bool:
    return size is not None and contents.cut_off(disk.prefix / item.path, size, item.size_in_bytes or 0)
