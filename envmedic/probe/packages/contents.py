"""Tests for truncated files, applied only to files that differ from the list of their distribution."""

from __future__ import annotations

import ast
import base64
import hashlib
import os
import struct
import warnings
from pathlib import Path

from envmedic import safe_io
from envmedic.errors import require_spare
from envmedic.probe.readable import read_bytes

_SOURCE_LIMIT = 4 << 20
"""Larger files than this are not read as Python."""
_CHUNK = 1 << 20
_HEADER_BYTES = 64
"""Of the ELF header of a 64-bit library; that of 32 bits is shorter, and no library is shorter than either."""
_LOADED = 1
"""PT_LOAD: a part of a library that the loader maps."""
_AT_THE_END = ("was never closed", "unterminated triple-quoted", "unexpected EOF", "expected an indented block")


def is_library(path: str) -> bool:
    """Whether it is a shared library by its name."""
    return path.endswith(".so") or ".so." in path.rpartition("/")[2]


def cut_off(path: Path, size: int, recorded: int) -> bool:
    """Whether a file of another size than recorded ends before its content does.

    A library is measured by its own headers, so that a stripped or patched one is whole. Python source counts as
    cut off where it is shorter than recorded, ends in the middle of a line and cannot be read as Python.
    """
    # an interrupted write or a full disk leaves files of size 0
    if size == 0:
        return recorded > 0
    if is_library(str(path)):
        return not _whole_library(path, size)
    if path.suffix == ".py" and size < recorded:
        return _broken_source(path)
    return False


def _whole_library(path: Path, size: int) -> bool:
    """Whether every part that the ELF header names lies inside the file. What cannot be read is taken as whole."""
    try:
        with safe_io.opened(path) as file:
            head = file.read(_HEADER_BYTES)
            if len(head) < _HEADER_BYTES or head[:4] != b"\x7fELF":
                return False
            if head[4:6] != b"\x02\x01":  # other than 64 bits, little-endian: no machine that torch runs on
                return True
            # a larger file is no damage: patchelf, for one, appends segments
            return _extent(file.fileno(), head) <= size
    except OSError as error:
        require_spare(error)
        return True
    except (struct.error, OverflowError):
        return False


def _extent(descriptor: int, head: bytes) -> int:
    """Where the last part of an ELF file ends, by its segments and its table of sections."""
    segments, sections = struct.unpack_from("<QQ", head, 32)
    segment_size, segment_count, section_size, section_count = struct.unpack_from("<HHHH", head, 54)
    # `pread`, since the buffered reader has moved on past the header
    table = os.pread(descriptor, segment_size * segment_count, segments)
    ends = [sections + section_size * section_count, segments + segment_size * segment_count]
    for start in range(0, segment_size * segment_count, segment_size or 1):
        (kind,) = struct.unpack_from("<I", table, start)
        # the other kinds describe ranges inside these, or nothing in the file (the GNU stack)
        if kind == _LOADED:
            (offset,) = struct.unpack_from("<Q", table, start + 8)
            (length,) = struct.unpack_from("<Q", table, start + 32)
            ends.append(offset + length)
    return int(max(ends))


def _broken_source(path: Path) -> bool:
    text = read_bytes(path, _SOURCE_LIMIT)
    if text is None:
        return False
    # a crash of the machine can leave blocks of zeros in place of the end: no source has NUL
    if b"\0" in text:
        return True
    # cheap test first: a truncated file almost never ends at the end of a line
    return not text.endswith(b"\n") and _breaks_off(text)


def _breaks_off(text: bytes) -> bool:
    """Whether reading it as Python fails at its end. Newer syntax than this Python's fails elsewhere."""
    try:
        # old packages have invalid escapes in strings, of which the parser warns on stderr
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        last = text.count(b"\n") + 1
        return (error.lineno or 0) >= last or any(words in (error.msg or "") for words in _AT_THE_END)
    except (ValueError, RecursionError, MemoryError):
        return False
    return False


def digest(path: Path) -> str | None:
    """The content's hash as RECORD writes it (``sha256=`` and URL-safe base64); None when it cannot be read."""
    # in chunks, and several files at once: libraries of torch reach a gigabyte
    total = hashlib.sha256()
    try:
        with safe_io.opened(path) as file:
            while chunk := file.read(_CHUNK):
                total.update(chunk)
    except OSError as error:
        require_spare(error)
        return None
    return "sha256=" + base64.urlsafe_b64encode(total.digest()).rstrip(b"=").decode()
