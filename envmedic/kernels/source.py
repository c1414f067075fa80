"""Copies the source of a project for a build, without results of earlier builds; run as ``python -c``.

Arguments: the source directory, and the directory to make. Results of earlier builds (``build``, egg-info, object
files, compiled modules) would make the build a no-op, or would be packed instead of new ones. Bundled libraries that
the project only links stay.
"""

from __future__ import annotations

import fnmatch
import shutil
import sys
from pathlib import Path

LEFT_OUT = ("build", "dist", ".eggs", "*.egg-info", "__pycache__", ".venv", ".tox", ".mypy_cache", ".pytest_cache")
"""Directories made by builds and tools."""
MADE = ("*.o", "*.obj", "*.pyc", "*.pyd", "*.cpython-*.so", "*.abi3.so")
"""Files made by builds."""
MARKS = (b"PyInit_", b"libtorch", b"libc10", b"libpython")
"""Every module compiled for Python or torch contains one of these."""
CHUNK = 1 << 24


def copy(source, target):
    """Make `target` a copy of `source`; links stay links."""

    def ignore(folder, names):
        return [name for name in names if left_out(Path(folder, name))]

    Path(target).parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, symlinks=True, ignore=ignore)


def left_out(path):
    """Whether the file or directory at `path` came from a build."""
    # links stay links: what they point to is not copied, so it is not judged either
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
            # a mark may be cut by the end of a chunk
            before = chunk[-len(max(MARKS, key=len)) :]
    return False


if __name__ == "__main__":
    copy(sys.argv[1], sys.argv[2])
