"""Reading wheels: file names, what they require, and whether they are what they claim to be."""

from __future__ import annotations

import hashlib
import io
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import BinaryIO

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from envmedic.errors import IntegrityError
from envmedic.model.facts import Interpreter

CHUNK = 1 << 20
"""Bytes read at a time."""


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def requirements(metadata: str) -> tuple[str, ...]:
    """Every Requires-Dist of a METADATA text."""
    return tuple(str(value) for value in HeaderParser().parsestr(metadata).get_all("Requires-Dist", ()))


def metadata_in(wheel: BinaryIO) -> str:
    """METADATA of an open wheel. Raises ValueError when it has none, `zipfile.BadZipFile` when it is no zip."""
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if _is_metadata(name)]
        if len(members) != 1:
            raise ValueError("it has no *.dist-info/METADATA")
        return archive.read(members[0]).decode("utf-8", "replace")


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
        with path.open("rb") as file:
            header = HeaderParser().parsestr(metadata_in(file))
    except (ValueError, zipfile.BadZipFile, InvalidWheelFilename) as error:
        raise broken_wheel(filename, str(error)) from error
    found = (canonicalize_name(str(header["Name"])), str(header["Version"]))
    if found[0] != name:
        raise broken_wheel(filename, f"its metadata says {found[0]} {found[1]}, not {name} {version}")


def broken_wheel(filename: str, cause: str) -> IntegrityError:
    """The error for a file that is not the wheel it should be."""
    return IntegrityError(
        f"{filename} is not a valid wheel",
        cause=cause,
        hint="Ask whoever runs the index or directory for a sound copy, or use another with --find-links",
    )


def tag_ranks(interpreter: Interpreter) -> dict[Tag, int]:
    """Rank of every wheel tag that the environment's CPython accepts here; smaller is better."""
    version = (interpreter.version or "").split(".")
    major, minor = int(version[0]), int(version[1])
    abi = f"cp{major}{minor}{'t' if interpreter.free_threaded else ''}"
    tags = [*cpython_tags((major, minor), abis=[abi]), *compatible_tags((major, minor), f"cp{major}{minor}")]
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}


def rank(filename: str, ranks: dict[Tag, int]) -> int:
    """Rank of the best tag of a wheel's file name; larger than any rank when none fits."""
    _, _, _, tags = parse_wheel_filename(filename)
    return min((ranks.get(tag, len(ranks)) for tag in tags), default=len(ranks))


def metadata_text(content: bytes) -> str:
    """METADATA of a wheel held in memory."""
    return metadata_in(io.BytesIO(content))
