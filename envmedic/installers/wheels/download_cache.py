"""The cache of fetched wheels: one directory per content hash, so that a name never hides other content."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from envmedic import owner, xdg

_POLL_S = 0.05


def root(environ: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_CACHE_HOME/envmedic/wheels``."""
    return xdg.cache(environ) / "envmedic" / "wheels"


def path_of(sha256: str, filename: str, *, prefix: Path | None = None) -> Path:
    """Where a wheel with this content lies, or will lie: in this user's cache.

    With `prefix` it is the place from which the owner of that environment installs it, whom root acts for.
    """
    foreign = prefix is not None and owner.owner(prefix) is not None
    folder = owner.wheels(prefix) if prefix is not None and foreign else root()
    return folder / sha256[:2] / sha256 / filename


def folders() -> Iterator[Path]:
    """Directory of every cached wheel."""
    for wheel in sorted(root().glob("??/*/*.whl")):
        yield wheel.parent


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of one wheel's directory, made if need be, while the block runs.

    A second process that wants the same wheel waits and then finds it complete. The lock ends with
    its process, however that ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w", encoding="utf-8") as file:
        while not _try_lock(file.fileno()):
            time.sleep(_POLL_S)  # an interruption by the user gets through, unlike in a blocking flock
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
