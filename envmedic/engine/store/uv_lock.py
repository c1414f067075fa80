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

from envmedic.engine.store.context import TransactionContext
from envmedic.errors import EnvironmentBusy
from envmedic.tree.fingerprint import UV_LOCK

WAIT_S = 60.0
"""How long to wait for a uv that works on the environment, in seconds."""
_POLL_S = 0.05
_OURS = b"envmedic exchanges this environment, and removes this file afterwards\n"


@contextmanager
def uv_locked(session: TransactionContext, *trees: Path) -> Iterator[None]:
    """Hold uv's lock of each of `trees` that is a virtual environment; the trees may change places meanwhile.

    A wait is announced and ends with EnvironmentBusy after `WAIT_S`, or with Interrupted. Raises OSError, also for a
    tree that is a symbolic link.
    """
    with ExitStack() as stack:
        for tree in trees:
            root = stack.enter_context(_root(tree))
            if (tree / "pyvenv.cfg").exists() and (file := _open(root, create=True)) is not None:
                stack.callback(os.close, file)
                _acquire(file, tree, session)
                stack.callback(_release, root, file)
        yield


def sweep(tree: Path) -> None:
    """Remove a lock file that a killed envmedic created in `tree`, unless a uv holds it now. Raises OSError."""
    if tree.is_symlink() or not tree.is_dir():
        return
    with ExitStack() as stack:
        root = stack.enter_context(_root(tree))
        if (file := _open(root, create=False)) is not None:
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


def _open(root: int, *, create: bool) -> int | None:
    """Open the lock file; None if it is missing and not to be created, or no regular file."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        regular = stat.S_ISREG(os.stat(UV_LOCK, dir_fd=root, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        if not create:
            return None
        with _keeping_times(root):
            file = os.open(UV_LOCK, flags | os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=root)
            os.write(file, _OURS)
        return file
    if not regular:
        return None
    try:
        return os.open(UV_LOCK, flags | os.O_RDWR, dir_fd=root)
    except PermissionError:  # left by root's uv; reading is enough for a lock on a local disk
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
    """Release the lock, and remove the file if envmedic made it, durably: no later command looks for it."""
    if os.pread(file, len(_OURS), 0) == _OURS:
        with _keeping_times(root), suppress(FileNotFoundError):  # somebody tidied up
            os.unlink(UV_LOCK, dir_fd=root)
        os.fsync(root)
    fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may have the descriptor, which keeps the lock


@contextmanager
def _keeping_times(root: int) -> Iterator[None]:
    """Give a directory its times back: undo promises them."""
    status = os.stat(root)
    yield
    with suppress(PermissionError):  # somebody else's directory, which this user may change but not date
        os.utime(root, ns=(status.st_atime_ns, status.st_mtime_ns))
