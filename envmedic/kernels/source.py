"""Copies the source of a project for a build, without what earlier builds left in it; run as ``python -c``.

Arguments: the source directory, and the directory to make. What is left out would make the build a no-op, or would be
packed in the place of what it makes: ``build``, egg-info, object files, and compiled modules. Libraries that a
project brings along and only links stay.
"""

from __future__ import annotations

import fnmatch
import shutil
import sys
from pathlib import Path

LEFT_OUT = ("build", "dist", ".eggs", "*.egg-info", "__pycache__", ".venv", ".tox", ".mypy_cache", ".pytest_cache")
"""Directories that builds and tools make."""
MADE = ("*.o", "*.obj", "*.pyc", "*.pyd", "*.cpython-*.so", "*.abi3.so")
"""Files that builds make."""
MARKS = (b"PyInit_", b"libtorch", b"libc10", b"libpython")
"""One of them stands in every module that was compiled for Python or for torch."""
CHUNK = 1 << 24


def copy(source, target):
    """Make `target` a copy of `source`; links stay links."""

    def ignore(folder, names):
        return [name for name in names if left_out(Path(folder, name))]

    Path(target).parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, symlinks=True, ignore=ignore)


def left_out(path):
    """Whether what lies at `path` came from a build."""
    if path.is_symlink():
        return False
    if path.is_dir():
        return any(fnmatch.fnmatch(path.name, pattern) for pattern in LEFT_OUT)
    return any(fnmatch.fnmatch(path.name, pattern) for pattern in MADE) or (path.suffix == ".so" and compiled(path))


def compiled(path):
    """Whether a library was made for Python or torch."""
    before = b""
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(CHUNK), b""):
            if any(mark in before + chunk for mark in MARKS):
                return True
            before = chunk[-len(max(MARKS, key=len)) :]
    return False


if __name__ == "__main__":
    copy(sys.argv[1], sys.argv[2])
