"""uv's own lock of an environment: an exclusive `flock` on `.lock` in its root, taken by each uv that writes there.

Held over an exchange in both trees, it makes a uv that starts at that moment wait, and then install into the tree that
is live. uv locks virtual environments in this way; for others it has a file in the temporary directory, named by a hash
of its own. pip and conda lock nothing. `late_writes` finds what these wrote.

A missing lock file is created for the time of the exchange and removed afterwards. Its content tells it from uv's,
which is empty, so that the next holder also removes one that a killed envmedic left.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from envmedic.engine.fs.durable import write_whole
from envmedic.engine.fs.exchange import rename_noreplace
from envmedic.engine.store.context import TransactionContext
from envmedic.engine.store.layout import TransactionDirectory
from envmedic.errors import EnvironmentBusy
from envmedic.tree.fingerprint import UV_LOCK

WAIT_S = 60.0
"""How long to wait for a uv that works on the environment, in seconds."""
_POLL_S = 0.05
_OURS = b"envmedic exchanges this environment, and removes this file afterwards\n"


@contextmanager
def uv_locked(session: TransactionContext, directory: TransactionDirectory) -> Iterator[None]:
    """Hold uv's lock of both trees of a transaction, where they are virtual environments; they may change places.

    A wait is announced and ends with EnvironmentBusy after `WAIT_S`, or with Interrupted. Raises OSError, also for a
    tree that is a symbolic link.
    """
    with ExitStack() as stack:
        for tree in (session.store.live, directory.tree):
            root = stack.enter_context(_root(tree))
            file = _opened(root, tree, directory) if (tree / "pyvenv.cfg").exists() else None
            if file is not None:
                stack.callback(os.close, file)
                _acquire(file, tree, session)
                stack.callback(_release, root, file)
        yield


def sweep(session: TransactionContext, directory: TransactionDirectory) -> None:
    """Remove lock files that a killed envmedic left in either tree, unless a uv holds them now. Raises OSError."""
    _prepared(directory).unlink(missing_ok=True)
    for tree in (session.store.live, directory.tree):
        if tree.is_symlink() or not tree.is_dir():
            continue
        with ExitStack() as stack:
            root = stack.enter_context(_root(tree))
            if (file := _existing(root)) is not None:
                stack.callback(os.close, file)
                if _try(file):
                    _release(root, file)


@contextmanager
def _root(tree: Path) -> Iterator[int]:
    """The descriptor of a tree's root, by which the lock file is found again after an exchange."""
    root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield root
    finally:
        os.close(root)


def _opened(root: int, tree: Path, directory: TransactionDirectory) -> int | None:
    """Open the lock file, which is made if it is missing; None for anything but a regular file.

    It is moved there whole: after a power cut an empty one would be taken for uv's, and stay.
    """
    prepared = _prepared(directory)
    if not os.path.lexists(tree / UV_LOCK):
        write_whole(prepared, _OURS, mode=0o666)
        try:
            with _keeping_times(root):
                rename_noreplace(prepared, tree / UV_LOCK)
        except FileExistsError:  # a uv has just begun
            prepared.unlink()
    return _existing(root)


def _prepared(directory: TransactionDirectory) -> Path:
    return directory.path / "uv-lock"


def _existing(root: int) -> int | None:
    """Open the lock file; None if it is missing, or no regular file."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        if not stat.S_ISREG(os.stat(UV_LOCK, dir_fd=root, follow_symlinks=False).st_mode):
            return None
        return os.open(UV_LOCK, flags | os.O_RDWR, dir_fd=root)
    except FileNotFoundError:
        return None
    except PermissionError:  # of root's uv; reading is enough for a lock on a local disk
        return os.open(UV_LOCK, flags | os.O_RDONLY, dir_fd=root)


def _acquire(file: int, tree: Path, session: TransactionContext) -> None:
    deadline, told = time.monotonic() + WAIT_S, False
    while not _try(file):
        if time.monotonic() > deadline:
            raise EnvironmentBusy(
                f"uv works on {session.prefix}",
                cause=f"It has held {tree / UV_LOCK} for more than {WAIT_S:.0f} seconds",
                hint="Run the same command again when it has finished",
            )
        if not told:
            told = True
            session.notice("waiting-for-uv", f"uv works on {session.prefix}: waiting for it, at most {WAIT_S:.0f} s")
        session.interruption.poll()
        time.sleep(_POLL_S)


def _try(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _release(root: int, file: int) -> None:
    """Remove the file if envmedic made it, durably: no later command looks for it. Closing it releases the lock."""
    if os.pread(file, len(_OURS), 0) == _OURS:
        with _keeping_times(root), suppress(FileNotFoundError):  # somebody tidied up
            os.unlink(UV_LOCK, dir_fd=root)
        os.fsync(root)


@contextmanager
def _keeping_times(root: int) -> Iterator[None]:
    """Give a directory its times back: undo promises them."""
    status = os.stat(root)
    yield
    with suppress(PermissionError):  # somebody else's directory, which this user may change but not date
        os.utime(root, ns=(status.st_atime_ns, status.st_mtime_ns))
