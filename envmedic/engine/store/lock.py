"""One lock per environment: an advisory `flock` whose descriptor the children of a transaction inherit.

The kernel releases the lock when the last process with the descriptor ends. A killed envmedic therefore leaves no
stale lock, and an environment in which its orphans still write is not taken over.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envmedic.engine.store import journal
from envmedic.engine.store.layout import Store
from envmedic.errors import RECOVERABLE, EnvironmentBusy, PreflightError, RecoveryNeeded

ORPHANS_S = 5.0
"""How long to wait for the children of a killed envmedic, in seconds."""
_POLL_S = 0.05


@contextmanager
def locked(store: Store) -> Iterator[int]:
    """Hold the environment's lock; gives the descriptor for children to inherit.

    Raises EnvironmentBusy with the holder's process id, PreflightError where the lock cannot be written, and
    RecoveryNeeded where it cannot and an interrupted transaction waits for it.
    """
    try:
        fd = _opened(store)
    except PreflightError as error:
        if journal.interrupted(store):
            raise RecoveryNeeded(
                f"An interrupted transaction on {store.prefix} cannot be settled",
                cause=f"{error.summary}: {error.cause}",
                hint=f"{error.hint}, then run `envmedic recover`; until then nothing is lost",
                environment=RECOVERABLE,
            ) from error
        raise
    try:
        yield fd
    finally:
        os.close(fd)  # never LOCK_UN: it would drop the lock under children that still run


def _opened(store: Store) -> int:
    """The descriptor of the lock file, locked, with the number of this process in it."""
    store.prepare()
    fd = -1
    try:
        fd = os.open(store.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        _acquire(fd, store)
        os.ftruncate(fd, 0)  # the holder's pid is for messages only; the flock is what counts
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except BaseException as error:
        if fd >= 0:
            os.close(fd)
        if isinstance(error, OSError):
            raise store.refused(error) from error
        raise
    return fd


def holder(store: Store) -> int | None:
    """The living process that holds the environment's lock, None without one; writes nothing.

    None, too, where this user may not read the lock file.
    """
    try:
        fd = os.open(store.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        pid = _holder(fd)
        # The lock is tried only where its last holder lives: a reader must not get in the way of a recovery.
        return pid if pid is not None and _alive(pid) and not _try(fd, fcntl.LOCK_SH) else None
    finally:
        os.close(fd)


def _acquire(fd: int, store: Store) -> None:
    # A living holder is refused at once. Children of a dead one end within moments (PDEATHSIG), so wait for them.
    deadline = time.monotonic() + ORPHANS_S
    while not _try(fd):
        holder = _holder(fd)
        if holder is not None and _alive(holder):
            raise EnvironmentBusy(
                f"Another envmedic works on {store.prefix}",
                cause=f"Process {holder} holds {store.lock}",
                hint="Wait until it has finished, or interrupt it with Ctrl-C",
            )
        if time.monotonic() > deadline:
            raise EnvironmentBusy(
                f"Processes of an interrupted envmedic still run on {store.prefix}",
                cause=f"{store.lock} is held, though process {holder} that took it is gone",
                hint=f"See them with `fuser {store.lock}`, and try again when they have ended",
            )
        time.sleep(_POLL_S)


def _try(fd: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(fd: int) -> int | None:
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
