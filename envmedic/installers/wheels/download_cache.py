"""The cache of fetched wheels: one directory per content hash, so that a name never hides other content."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from envmedic import xdg

_POLL_S = 0.05


def root(environ: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_CACHE_HOME/envmedic/wheels``."""
    return xdg.cache(environ) / "envmedic" / "wheels"


def path_of(sha256: str, filename: str) -> Path:
    """Path of a wheel with this content in this user's cache, whether it exists or not."""
    # Two levels, as in git: some file systems are slow with many thousand entries in one directory.
    return root() / sha256[:2] / sha256 / filename


def folders() -> Iterator[Path]:
    """Directory of every cached wheel."""
    for wheel in sorted(root().glob("??/*/*.whl")):
        yield wheel.parent


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of one wheel's directory while the block runs; creates the directory.

    A second process that wants the same wheel waits, and then finds it complete. The kernel releases the lock when the
    process ends, also after SIGKILL.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # A file of its own, never removed: a lock on the wheel itself would be lost when it is replaced.
    with (folder / ".lock").open("w", encoding="utf-8") as file:
        while not _try_lock(file.fileno()):
            time.sleep(
                _POLL_S
            )  # a poll keeps the wait short enough for a cancellation, which a blocking flock would not
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
