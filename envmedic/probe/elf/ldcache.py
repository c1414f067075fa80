"""``/etc/ld.so.cache``: which file the run-time loader takes for a soname.

Format: glibc's ``dl-cache.h`` (struct cache_file_new), which may follow the older one in the same file.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from envmedic.errors import require_spare

MAGIC = b"glibc-ld.so.cache1.1"
PATH = Path("/etc/ld.so.cache")
_HEADER_SIZE = 48
_ENTRY = struct.Struct("<iIIIQ")


def parse(data: bytes) -> dict[str, tuple[str, ...]]:
    """Return soname → paths, in the cache's order; {} for a cache in another format."""
    start = data.find(MAGIC)
    if start < 0 or len(data) < start + _HEADER_SIZE:
        return {}
    (count,) = struct.unpack_from("<I", data, start + len(MAGIC))
    found: dict[str, list[str]] = {}
    for index in range(count):
        place = start + _HEADER_SIZE + index * _ENTRY.size
        if place + _ENTRY.size > len(data):
            break
        _, key, value, _, _ = _ENTRY.unpack_from(data, place)
        # offsets of strings count from the header of the new format, not from the start of the file
        found.setdefault(_text(data, start + key), []).append(_text(data, start + value))
    return {name: tuple(paths) for name, paths in found.items()}


def _text(data: bytes, start: int) -> str:
    return data[start : data.find(b"\0", start)].decode("utf-8", "replace")


def system() -> Mapping[str, tuple[str, ...]]:
    """This host's cache; {} where there is none (musl, a bare container)."""
    try:
        return parse(PATH.read_bytes())
    except OSError as error:
        require_spare(error)
        return {}
