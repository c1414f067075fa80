"""Small files of `conda-meta`, read without being stopped by what may lie in their place."""

from __future__ import annotations

from pathlib import Path

from envmedic import safe_io
from envmedic.errors import require_spare

LARGEST = 64 << 20
"""Bytes. The record of the largest packages (some 30,000 files) has 10 MB."""


def read(path: Path) -> bytes | None:
    """Content of a regular file, None where there is no such file.

    Raises OSError as `regular.read` does, and Exhausted where memory or descriptors ran out.
    """
    try:
        return safe_io.read(path, LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        require_spare(error)
        raise
