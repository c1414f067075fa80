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

from envmedic.engine.store.layout import Store
from envmedic.errors import EnvironmentBusy

ORPHANS_S = 5.0
"""How long to wait for the children of a killed envmedic, in seconds."""
_POLL_S = 0.05


@contextmanager
def locked(store: Store) -> Iterator[int]:
    """Hold the environment's lock; gives the descriptor for children to inherit.

    Raises EnvironmentBusy with the holder's process id, and PreflightError where the store cannot be made.
    """
    store.prepare()
    fd = os.open(store.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _acquire(fd, store)
        os.ftruncate(fd, 0)  # the holder's pid is for messages only; the flock is what counts
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield fd
    finally:
        os.close(fd)  # never LOCK_UN: it would drop the lock under children that still run


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


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(fd: int) -> int | None:
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
