"""An archive as python-build-standalone's `install_only`, of the Python that runs the tests."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.conda.pythons import moved, staged


def install_only(minor: str, room: Path) -> Path:
    """Make it of an installed Python (``3.11``), with its library beside it where it has a shared one."""
    stage = room / "python"
    staged(minor, stage)
    for path in (stage / "bin" / f"python{minor}", *(stage / "lib").glob("libpython*.so.*")):
        moved(path, "$ORIGIN/../lib")
    made = room / f"cpython-{minor}-install_only.tar.gz"
    with tarfile.open(made, "w:gz", compresslevel=1) as archive:
        archive.add(stage, "python")
    return made
