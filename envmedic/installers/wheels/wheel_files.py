"""Reading wheels: file names, what they require, and whether they are what they claim to be."""

from __future__ import annotations

import errno
import hashlib
import io
import lzma
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from envmedic import limits
from envmedic.errors import IntegrityError
from envmedic.model.facts import Interpreter

CHUNK = 1 << 20
"""Bytes read at a time."""
_VERSION = re.compile(r"(\d{1,2})\.(\d{1,2})(?!\d)")
LARGEST_TEXT = 16 << 20
"""Bytes of METADATA or RECORD; the largest have some millions."""
_SMALL_BYTES = 1 << 30
"""Unpacked, what a wheel may have however small it is packed."""
_MOST_PACKED = 100
"""Bytes out of one at most, beyond that: machine code and text give two to ten, an archive bomb a thousand."""


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def requirements(metadata: str) -> tuple[str, ...]:
    """Every Requires-Dist of a METADATA text."""
    found = HeaderParser().parsestr(metadata).get_all("Requires-Dist", ())
    return tuple(limits.requirement(str(value)) for value in found)


def metadata_in(wheel: BinaryIO) -> str:
    """METADATA of an open wheel. Raises ValueError when it has none, `zipfile.BadZipFile` when it is no sound zip."""
    with unpacking(), zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if _is_metadata(name)]
        if len(members) != 1:
            raise ValueError("it has no *.dist-info/METADATA")
        return member(archive, members[0]).decode("utf-8", "replace")


def member(archive: zipfile.ZipFile, name: str) -> bytes:
    """A text of an archive. Raises ValueError for one that becomes larger than any, and what `unpacking` turns."""
    with archive.open(name) as file:
        content = file.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise ValueError(f"{name} in it has more than {LARGEST_TEXT} bytes")
    return content


@contextmanager
def unpacking() -> Iterator[None]:
    """Turn what zipfile raises for damaged, encrypted and newer archives into `zipfile.BadZipFile`."""
    try:
        yield
    except (
        EOFError,
        NotImplementedError,
        RuntimeError,
        OverflowError,
        struct.error,
        zlib.error,
        lzma.LZMAError,
    ) as error:
        raise zipfile.BadZipFile(str(error) or type(error).__name__) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # by which a place before the beginning of a file is refused
            raise
        raise zipfile.BadZipFile("it names a place that is not in it") from error


def _is_metadata(member: str) -> bool:
    folder, _, file = member.partition("/")
    return folder.endswith(".dist-info") and file == "METADATA"


def requires(wheel: Path) -> tuple[str, ...]:
    """Every Requires-Dist of a wheel on disk. Raises `IntegrityError` when it is not a readable wheel."""
    try:
        with wheel.open("rb") as file:
            return requirements(metadata_in(file))
    except (ValueError, zipfile.BadZipFile, OSError) as error:
        raise broken_wheel(wheel.name, str(error)) from error


def require_wheel(path: Path, filename: str) -> None:
    """Raise `IntegrityError` unless `path` is a zip whose dist-info belongs to `filename`."""
    try:
        name, version, _, _ = parse_wheel_filename(filename)
        _require_safe(path)
        with path.open("rb") as file:
            header = HeaderParser().parsestr(metadata_in(file))
    except (ValueError, zipfile.BadZipFile, InvalidWheelFilename) as error:
        raise broken_wheel(filename, str(error)) from error
    found = (canonicalize_name(str(header["Name"])), str(header["Version"]))
    if found[0] != name:
        raise broken_wheel(filename, f"its metadata says {found[0]} {found[1]}, not {name} {version}")


def _require_safe(path: Path) -> None:
    """Raise ValueError for a wheel that would write outside of the environment, or fill the disk."""
    with unpacking(), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    for item in members:
        parts = PurePosixPath(item.filename.replace("\\", "/")).parts
        if item.filename.startswith("/") or ".." in parts:
            raise ValueError(f"it holds {item.filename!r}, which lies outside of the environment")
        if stat.S_ISLNK(item.external_attr >> 16):
            raise ValueError(f"it holds {item.filename!r}, a symbolic link, which no wheel has")
    unpacked = sum(item.file_size for item in members)
    if unpacked > max(_SMALL_BYTES, _MOST_PACKED * path.stat().st_size):
        raise ValueError(f"its {path.stat().st_size} bytes would become {unpacked}")


def broken_wheel(filename: str, cause: str) -> IntegrityError:
    """The error for a file that is not the wheel it should be."""
    return IntegrityError(
        f"{filename} is not a valid wheel",
        cause=cause,
        hint="Ask whoever runs the index or directory for a sound copy, or use another with --find-links",
    )


def tag_ranks(interpreter: Interpreter) -> dict[Tag, int]:
    """Rank of every wheel tag that the environment's CPython accepts here; smaller is better. None of a version unknown."""
    version = _VERSION.match(interpreter.version or "")
    if version is None:
        return {}
    major, minor = int(version[1]), int(version[2])
    abi = f"cp{major}{minor}{'t' if interpreter.free_threaded else ''}"
    tags = [*cpython_tags((major, minor), abis=[abi]), *compatible_tags((major, minor), f"cp{major}{minor}")]
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}


def rank(filename: str, ranks: dict[Tag, int]) -> int:
    """Rank of the best tag of a wheel's file name; larger than any rank when none fits, or it is no such name."""
    try:
        _, _, _, tags = parse_wheel_filename(filename)
    except ValueError:  # `InvalidWheelFilename`, and numbers of thousands of digits
        return len(ranks)
    return min((ranks.get(tag, len(ranks)) for tag in tags), default=len(ranks))


def metadata_text(content: bytes) -> str:
    """METADATA of a wheel held in memory."""
    return metadata_in(io.BytesIO(content))
