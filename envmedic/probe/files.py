"""Reading files of an environment that may be damaged, unreadable or hostile: what cannot be read is absent."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MAXIMUM_BYTES = 64 * 1024 * 1024
"""Larger files than this are no metadata (the largest RECORD of a torch wheel has 2 MB)."""


def read_bytes(path: Path, limit: int = MAXIMUM_BYTES) -> bytes | None:
    """Content of a regular file; None when it is absent, unreadable, too large or anything else.

    Opened without blocking, so that a FIFO in its place does not hang the probe.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):  # ValueError: a name with NUL
        return None
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor, not a path
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                return None
            return file.read(limit)
        except OSError:
            return None


def read_text(path: Path) -> str | None:
    """Content as text, undecodable bytes replaced; None as for `read_bytes`."""
    data = read_bytes(path)
    return None if data is None else data.decode("utf-8", "replace")


def names(directory: Path) -> tuple[str, ...]:
    """Sorted names in a directory; () when it cannot be listed."""
    try:
        return tuple(sorted(os.listdir(directory)))  # noqa: PTH208  # names only; Path objects cost 10 times more
    except OSError:
        return ()


def is_directory(path: Path) -> bool:
    """Whether it is a directory (through symbolic links); False when that cannot be told."""
    return os.path.isdir(path)  # noqa: PTH112  # unlike Path.is_dir it never raises


def is_file(path: Path) -> bool:
    """Whether it is a regular file (through symbolic links); False when that cannot be told."""
    return os.path.isfile(path)  # noqa: PTH113  # unlike Path.is_file it never raises
