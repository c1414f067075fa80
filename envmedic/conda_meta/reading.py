"""Small files of `conda-meta`, read without being stopped by what may lie in their place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

LARGEST = 64 << 20
"""Bytes. The record of the largest packages (some 30,000 files) has 10 MB."""


def read(path: Path) -> bytes | None:
    """Content of a regular file, None where there is no such file.

    Raises OSError when it cannot be read, is larger than `LARGEST`, or is no regular file. Opened without
    blocking, so that a FIFO does not hang its reader.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor, not a path
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no regular file")
        if status.st_size > LARGEST:
            raise OSError(f"{path} has {status.st_size} bytes")
        return file.read(LARGEST)
