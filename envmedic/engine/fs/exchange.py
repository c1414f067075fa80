"""Swap of a clone and an environment.

One call swaps the two directories where the file system can; elsewhere two renames, between which
the path does not exist. The journal around them is the caller's.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from envmedic.engine.fs import scratch, syscalls
from envmedic.model.registries.modes import ExchangeMethod
from envmedic.tree import mounts

ExchangeObstacle = Literal["", "mount-point", "image-layer", "cross-device", "permission", "unsupported", "error"]

NO_EXCHANGE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
"""What a file system answers that knows no flags of a rename."""


@dataclass(frozen=True)
class ExchangeProbe:
    """How a directory of `workdir` can take the environment's place."""

    method: ExchangeMethod | None
    """None when it cannot."""
    reason: str = ""
    """Why not atomically, or not at all."""
    code: ExchangeObstacle = ""


def exchange(first: Path, second: Path) -> None:
    """Swap two directories of one file system atomically, in one call.

    Raises OSError: EBUSY for a mount point, EXDEV across file systems or for a directory of a lower
    overlay layer, EINVAL or ENOSYS where the file system cannot, EACCES or EPERM without write
    permission on both parents and both directories.
    """
    syscalls.rename_exchange(first, second)


def rename_noreplace(source: Path, target: Path) -> None:
    """Rename without ever replacing `target`. Raises FileExistsError and other OSErrors."""
    try:
        syscalls.rename_noreplace(source, target)
    except OSError as error:
        if error.errno not in NO_EXCHANGE:
            raise
        # The file system knows no flags. The caller holds the lock, so nothing of envmedic
        # creates `target` between the look and the rename.
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(target)) from error
        source.rename(target)


def sync_directory(directory: Path) -> None:
    """Make the entries of `directory` durable. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_filesystem(path: Path) -> None:
    """Make everything on the file system of the directory `path` durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        syscalls.syncfs(descriptor)
    finally:
        os.close(descriptor)


def probe_exchange(prefix: Path, workdir: Path) -> ExchangeProbe:
    """Find out how a directory inside `workdir` can be exchanged with `prefix`, which stays as it is.

    `prefix` is a real path; `workdir` an existing directory of the same file system, such as
    ``<parent>/.envmedic``. Two temporary directories are exchanged between the prefix's parent and
    `workdir`, and removed.
    """
    if mounts.is_mount_point(prefix):
        return ExchangeProbe(None, f"{prefix} is a mount point", "mount-point")
    for path in (prefix, prefix.parent, workdir):  # moving a directory elsewhere changes the directory itself too
        if not os.access(path, os.W_OK | os.X_OK):
            return ExchangeProbe(None, f"no write permission on {path}", "permission")
    try:
        with ExitStack() as stack:
            return _try(prefix, workdir, stack)
    except OSError as error:
        code: ExchangeObstacle = "permission" if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS} else "error"
        return ExchangeProbe(None, f"{error.strerror}: {error.filename}", code)


def probe_link(prefix: Path, workdir: Path) -> ExchangeProbe:
    """The same where `prefix` is a link, which another one replaces; nothing is tried, since every file system can."""
    if mounts.is_mount_point(Path(os.path.realpath(prefix))):
        return ExchangeProbe(None, f"something is mounted over the tree of {prefix}", "mount-point")
    if workdir.lstat().st_dev != prefix.lstat().st_dev:
        return ExchangeProbe(None, "the staging directory is on another file system", "cross-device")
    return ExchangeProbe("link")


def _try(prefix: Path, workdir: Path, stack: ExitStack) -> ExchangeProbe:
    # The file system's type is no proof: overlay, NFS and FUSE decide by directory, so the real call is tried.
    in_store, at_prefix = scratch.names(prefix)
    inside = stack.enter_context(scratch.scratch(workdir, in_store))
    beside = stack.enter_context(scratch.scratch(prefix.parent, at_prefix))
    (inside / "env").mkdir()
    stack.enter_context(scratch.held(inside / "env"))  # for a moment it is what lies beside the environment
    (beside / "kept").mkdir()
    if syscalls.filesystem_type(prefix) == syscalls.OVERLAYFS_MAGIC and not _movable(prefix, beside):
        return ExchangeProbe(
            None, f"{prefix} lies in a lower layer of an overlay file system, which cannot move it", "image-layer"
        )
    try:
        # `beside` lies in the prefix's own parent, as the prefix does; `inside/env` where the clone will be.
        exchange(inside / "env", beside)
        exchange(inside / "env", beside)  # back, so that each name is removed by its owner
    except OSError as error:
        return _refused(error)
    return ExchangeProbe("exchange")


def _movable(prefix: Path, occupied: Path) -> bool:
    """Ask overlayfs whether `prefix` can be renamed, without renaming it.

    Renaming a directory onto a directory that is not empty fails on every path through overlayfs;
    with EXDEV, before anything else, when the source has a part in a lower layer.
    """
    try:
        os.rename(prefix, occupied)  # noqa: PTH104  # never replaces: see above
    except OSError as error:
        if error.errno == errno.EXDEV:
            return False
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
            return True
        raise
    raise OSError(errno.EIO, "a directory replaced one that was not empty", os.fspath(occupied))


def _refused(error: OSError) -> ExchangeProbe:
    if error.errno in NO_EXCHANGE:
        return ExchangeProbe("two-renames", "the file system cannot exchange two paths atomically", "unsupported")
    if error.errno == errno.EXDEV:
        return ExchangeProbe(None, "the staging directory is on another file system", "cross-device")
    raise error
