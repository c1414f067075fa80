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
from dataclasses import dataclass
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

    Raises EnvironmentBusy with the holder, PreflightError where the lock cannot be written, and
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
    """The descriptor of the lock file, locked, with this process named in it."""
    store.prepare()
    fd = -1
    try:
        fd = os.open(store.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        _acquire(fd, store)
        os.ftruncate(fd, 0)  # the holder is for messages only; the flock is what counts
        os.pwrite(fd, _Holder.current().line().encode(), 0)
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
        found = _holder(fd)
        # The lock is tried only where its last holder may live: a reader must not get in the way of a recovery.
        return found.pid if found is not None and found.lives() is not False and not _try(fd, fcntl.LOCK_SH) else None
    finally:
        os.close(fd)


def _acquire(fd: int, store: Store) -> None:
    # A living holder is refused at once. Children of a dead one end within moments (PDEATHSIG), so wait for them.
    deadline = time.monotonic() + ORPHANS_S
    while not _try(fd):
        holder = _holder(fd)
        lives = holder is not None and holder.lives()
        if holder is not None and lives:
            raise EnvironmentBusy(
                f"Another envmedic works on {store.prefix}",
                cause=f"Process {holder.pid} holds {store.lock}",
                hint="Wait until it has finished, or interrupt it with Ctrl-C",
            )
        if time.monotonic() > deadline:
            if holder is None or lives is None:
                where = "" if holder is None else f", taken by process {holder.pid} {holder.place()}"
                raise EnvironmentBusy(
                    f"Another envmedic works on {store.prefix}",
                    cause=f"{store.lock} is held{where}; from here its holder cannot be seen",
                    hint="Wait until it has finished, or interrupt it where it was started",
                )
            raise EnvironmentBusy(
                f"Processes of an interrupted envmedic still run on {store.prefix}",
                cause=f"{store.lock} is held, though process {holder.pid} that took it is gone",
                hint=f"See them with `fuser {store.lock}`, and try again when they have ended",
            )
        time.sleep(_POLL_S)


def _try(fd: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True)
class _Holder:
    """The process that took a lock, by what tells it from another one with the same process ID."""

    pid: int
    started: str = ""
    """Clock ticks from the start of the system to that of the process; "" in locks of version 0.1."""
    boot: str = ""
    namespace: str = ""
    """Of process IDs: containers have their own."""
    host: str = ""

    @classmethod
    def current(cls) -> _Holder:
        """This process."""
        pid = os.getpid()
        return cls(
            pid, _started(pid) or "", _read("/proc/sys/kernel/random/boot_id"), _namespace(), os.uname().nodename
        )

    def line(self) -> str:
        """What is kept of it in the lock."""
        return f"{self.pid} {self.started} {self.boot} {self.namespace} {self.host}\n"

    def lives(self) -> bool | None:
        """Whether it still runs; None where that cannot be seen from here: on another host, in another container."""
        started = _started(self.pid)
        if not self.started:
            return started is not None
        here = self.current()
        if self.boot != here.boot:
            return False if self.host == here.host else None
        return started == self.started if self.namespace == here.namespace else None

    def place(self) -> str:
        """Where it ran, in words."""
        return f"on {self.host}" if self.host != os.uname().nodename else "in another container"


def _holder(fd: int) -> _Holder | None:
    words = os.pread(fd, 1024, 0).decode(errors="replace").partition("\n")[0].split()
    whole = len(words) in {1, 5} and words[0].isdigit()  # else it is written at this moment
    return _Holder(int(words[0]), *words[1:]) if whole else None


def _started(pid: int) -> str | None:
    """When a process started; None where there is none. Its name, in parentheses, may hold blanks."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else None  # noqa: PLR2004  # proc(5): field 22


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # no path
    except OSError:
        return "-"


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return "-"
