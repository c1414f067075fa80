"""Wheel files: names, metadata, tag ranks and validity."""

from __future__ import annotations

import errno
import fcntl
import hashlib
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

FICLONE = 0x40049409
"""ioctl that shares the blocks of a file (linux/fs.h)."""
CHUNK = 1 << 20
"""Bytes read at a time."""
_VERSION = re.compile(r"(\d{1,2})\.(\d{1,2})(?!\d)")
LARGEST_TEXT = 16 << 20
"""Limit for METADATA and RECORD, in bytes; the largest known ones have a few millions."""
_SMALL_BYTES = 1 << 30
"""Unpacked size in bytes that any wheel may have, however well it is compressed."""
_MOST_PACKED = 100
"""Largest compression ratio beyond that size: machine code and text reach 2 to 10, an archive bomb 1000."""


def share_blocks(source: int, target: int) -> bool:
    """Whether the file system made the file `target` a reflink of `source`; both are descriptors."""
    try:
        fcntl.ioctl(target, FICLONE, source)
    except OSError:
        return False  # EXDEV: another file system; EOPNOTSUPP: no reflinks. A copy reports any real fault
    return True


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
        # Two *.dist-info directories would leave it open which one an installer takes: such a wheel is refused.
        members = [name for name in archive.namelist() if is_metadata(name)]
        if len(members) != 1:
            raise ValueError("it has no *.dist-info/METADATA")
        return member(archive, members[0]).decode("utf-8", "replace")


def member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Content of a text in an archive. Raises ValueError above `LARGEST_TEXT`, and what `unpacking` translates."""
    with archive.open(name) as file:
        # The size in the directory of the zip is the maker's claim: reading is what must be limited.
        content = file.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise ValueError(f"{name} in it has more than {LARGEST_TEXT} bytes")
    return content


@contextmanager
def unpacking() -> Iterator[None]:
    """Translate the errors of zipfile for damaged, encrypted and newer archives to `zipfile.BadZipFile`."""
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
        if error.errno != errno.EINVAL:  # what seek raises for an offset before the start of the file
            raise
        raise zipfile.BadZipFile("it names a place that is not in it") from error


def is_metadata(member: str) -> bool:
    """Whether a member of a wheel is its METADATA."""
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
        # A backslash is a separator for installers on Windows only; a check for all platforms costs nothing.
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
    """Rank of each wheel tag that the environment's CPython accepts; smaller is better. Empty for unknown versions."""
    version = _VERSION.match(interpreter.version or "")
    if version is None:
        return {}
    major, minor = int(version[1]), int(version[2])
    abi = f"cp{major}{minor}{'t' if interpreter.free_threaded else ''}"
    # packaging names the ABI of the running interpreter by default; that of the environment may differ.
    tags = [*cpython_tags((major, minor), abis=[abi]), *compatible_tags((major, minor), f"cp{major}{minor}")]
    # Reversed, so that the best rank stays should a tag occur twice.
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}


def rank(filename: str, ranks: dict[Tag, int]) -> int:
    """Rank of the best tag of a wheel's file name; beyond all ranks when none fits, or the name is not a wheel's."""
    try:
        _, _, _, tags = parse_wheel_filename(filename)
    except ValueError:  # `InvalidWheelFilename`, or an integer beyond Python's limit of digits
        return len(ranks)
    return min((ranks.get(tag, len(ranks)) for tag in tags), default=len(ranks))
