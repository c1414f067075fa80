"""Where tests put environments that they change."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from envmedic.engine.fs import trash


def in_memory(otherwise: Path) -> Iterator[Path]:
    """A directory in memory where there is one, else `otherwise`: transactions write durably, many times each."""
    if not os.access("/dev/shm", os.W_OK):
        yield otherwise
        return
    root = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        yield root
    finally:
        trash.empty(root)
