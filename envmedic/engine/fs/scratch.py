"""Directories for a moment. A later command tells those of a process that was killed: nobody holds them any more."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NO_LOCKS = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS})
"""What flock answers where a directory cannot be locked, such as on NFS: nothing there is taken for left over."""


def names(prefix: Path) -> tuple[str, str]:
    """How directories for probes on the environment at `prefix` begin: in the store, and beside the environment."""
    key = hashlib.sha256(os.fsencode(prefix.name)).hexdigest()[:16]
    return f".probe-{key}-", f".envmedic-probe-{key}-"


@contextmanager
def scratch(directory: Path, start: str) -> Iterator[Path]:
    """A directory in `directory` whose name begins with `start`, held until it is removed. Raises OSError."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix=start, dir=directory) as name, held(Path(name)):
        yield Path(name)


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Let nobody take `directory` for left over meanwhile. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _lock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def left_over(directory: Path, start: str) -> tuple[Path, ...]:
    """Directories of `scratch` whose process was killed. Raises OSError."""
    return tuple(path for path in directory.iterdir() if path.name.startswith(start) and _is_free(path))


def _is_free(directory: Path) -> bool:
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # it was removed meanwhile, or is none of ours to look into
        return False
    try:
        return _lock(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    """Lock without waiting; returns whether that was possible."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True
