"""A directory that every user can reach, and small environments in it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine_low.support import make_prefix


@pytest.fixture
def open_tmp() -> Iterator[Path]:
    """A temporary directory with all its parents searchable, unlike pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="envmedic-test-"))
    path.chmod(0o755)
    yield Path(os.path.realpath(path))
    shutil.rmtree(path)


@pytest.fixture
def prefix(open_tmp: Path) -> Path:
    """A small environment with links, modes and old times."""
    return make_prefix(open_tmp / "env")
