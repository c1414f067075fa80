"""Safe reader of small files in ``conda-meta``: no FIFO, device or huge file can block it."""

from __future__ import annotations

from pathlib import Path

from envmedic import safe_io
from envmedic.errors import require_spare

LARGEST = 64 << 20
"""Limit in bytes. Records of the largest packages (some 30,000 files) have 10 MB."""


def read(path: Path) -> bytes | None:
    """Return the content of a regular file; None if it does not exist.

    Raises OSError as `safe_io.read` does, and Exhausted if memory or file descriptors ran out.
    """
    try:
        return safe_io.read(path, LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        # ENOMEM or EMFILE says nothing about the file: to call it damaged would lead to a wrong diagnosis
        require_spare(error)
        raise
