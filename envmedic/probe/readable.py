"""Tolerant access to files of an environment that may be damaged, unreadable or hostile.

An unreadable file counts as absent, except when this process is out of memory or descriptors: then all functions
raise Exhausted.
"""

from __future__ import annotations

import os
from pathlib import Path

from envmedic import safe_io
from envmedic.errors import require_spare

MAXIMUM_BYTES = 64 * 1024 * 1024
"""Larger files than this are no metadata (the largest RECORD of a torch wheel has 2 MB)."""


def read_bytes(path: Path, limit: int = MAXIMUM_BYTES, *, follow: bool = False) -> bytes | None:
    """Content of a regular file; None when it is absent, unreadable, too large or anything else (see `safe_io.read`).

    Links that lead to files of other names are not followed, unless `follow` marks the file as the user's own.
    """
    try:
        return safe_io.read(path, limit, follow=follow)
    except OSError as error:
        require_spare(error)
        return None


def read_text(path: Path, limit: int = MAXIMUM_BYTES, *, follow: bool = False) -> str | None:
    """Content as text, undecodable bytes replaced; None as for `read_bytes`."""
    data = read_bytes(path, limit, follow=follow)
    return None if data is None else data.decode("utf-8", "replace")


def names(directory: Path) -> tuple[str, ...]:
    """Sorted names in a directory; () when it cannot be listed."""
    try:
        return tuple(sorted(os.listdir(directory)))  # noqa: PTH208  # names only; Path objects cost 10 times more
    except ValueError:  # a name with NUL
        return ()
    except OSError as error:
        require_spare(error)
        return ()


def is_directory(path: Path) -> bool:
    """Whether it is a directory (through symbolic links); False when that cannot be told."""
    return os.path.isdir(path)  # noqa: PTH112  # unlike Path.is_dir it never raises


def is_file(path: Path) -> bool:
    """Whether it is a regular file (through symbolic links); False when that cannot be told."""
    return os.path.isfile(path)  # noqa: PTH113  # unlike Path.is_file it never raises
