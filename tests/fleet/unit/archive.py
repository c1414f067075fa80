"""An archive as python-build-standalone's `install_only`, of the Python that runs the tests."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tests.gallery.repair_gallery.conda.pythons import moved, staged
from tests.gallery.repair_gallery.room import Untried


def install_only(minor: str, room: Path) -> Path:
    """Make it of an installed Python (``3.11``), with its library beside it where it has a shared one."""
    stage = room / "python"
    try:
        staged(minor, stage)
    except Untried as reason:
        pytest.skip(str(reason))
    for path in (stage / "bin" / f"python{minor}", *(stage / "lib").glob("libpython*.so.*")):
        moved(path, "$ORIGIN/../lib")
    made = room / f"cpython-{minor}-install_only.tar.gz"
    with tarfile.open(made, "w:gz", compresslevel=1) as archive:
        archive.add(stage, "python")
    return made
