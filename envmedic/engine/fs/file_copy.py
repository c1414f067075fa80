"""Copies of single files that keep everything `stat` shows: content, holes, mode, owner, times, xattrs."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from envmedic.engine.fs import syscalls
from envmedic.tree import attributes

LossKind = Literal["ownership", "capabilities", "attributes", "flags", "links", "vanished"]
"""What a copy may lack of its original; `links`: content is copied that was to be shared."""

_CHUNK = 32 << 20
"""Bytes between two looks at whether to stop."""
_BUFFER = 1 << 20
_BLOCK = 512
_NO_RANGE_COPY = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF})
NO_REFLINK = frozenset(
    {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM, errno.ETXTBSY, errno.EBADF}
)
"""What FICLONE answers where it cannot share extents (ioctl_ficlone(2)); the content is copied then."""
NO_LINK = frozenset({errno.EPERM, errno.EMLINK, errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS})
"""What linkat answers for protected hard links, too many links, another mount, or no hard links at all."""
_SET_ID = stat.S_ISUID | stat.S_ISGID
"""They would give away the rights of whom a copy falls to."""
_NO_OWNERSHIP = frozenset({errno.EPERM, errno.EINVAL})
_NO_XATTR = frozenset({errno.EOPNOTSUPP, errno.EPERM, errno.EACCES, errno.ENODATA, errno.ENOSPC})


@dataclass
class Counts:
    """What one thread did; added up at the end."""

    files: int = 0
    directories: int = 0
    symlinks: int = 0
    special: int = 0
    linked: int = 0
    reflinked: int = 0
    copied: int = 0
    bytes_copied: int = 0
    lost: list[tuple[LossKind, str]] = field(default_factory=list)
    """What was lost of which path."""
    deferred: list[tuple[str, str]] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        """Add what another thread did."""
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))


def copy_content(source: int, target: int, size: int, blocks: int, go_on: Callable[[], None]) -> None:
    """Copy `size` bytes between two descriptors, keeping holes of a sparse file (fewer `blocks` than bytes).

    `go_on` is called between chunks and may raise. Raises OSError.
    """
    sparse = blocks * _BLOCK < size
    offset = 0
    while offset < size:
        start, end = _next_data(source, offset, size) if sparse else (offset, size)
        _copy_range(source, target, start, end, go_on)
        offset = end
    if sparse:
        os.ftruncate(target, size)


def _next_data(descriptor: int, offset: int, size: int) -> tuple[int, int]:
    try:
        start = os.lseek(descriptor, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a hole up to the end
            return size, size
        if error.errno == errno.EINVAL:  # no such thing as holes here
            return offset, size
        raise
    try:
        return start, min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
    except OSError as error:
        if error.errno == errno.ENXIO:  # cut short in between, which the fingerprint tells
            return size, size
        raise


def _copy_range(source: int, target: int, start: int, end: int, go_on: Callable[[], None]) -> None:
    while start < end:
        go_on()
        length = min(end - start, _CHUNK)
        try:
            done = os.copy_file_range(source, target, length, start, start)
        except OSError as error:
            if error.errno not in _NO_RANGE_COPY:
                raise
            done = _copy_buffered(source, target, start, min(length, _BUFFER))
        if done == 0:  # shorter than stat said: it changed, and the fingerprint tells
            return
        start += done


def _copy_buffered(source: int, target: int, offset: int, length: int) -> int:
    data = os.pread(source, length, offset)
    written = 0
    while written < len(data):
        written += os.pwrite(target, data[written:], offset + written)
    return len(data)


def reflink_or_copy(
    source: int,
    target: int,
    status: os.stat_result,
    counts: Counts,
    path: str,
    *,
    reflink: bool,
    go_on: Callable[[], None],
) -> None:
    """Give the empty file `target`, `path` in the counts, the content of `source`, sharing extents when `reflink`."""
    if reflink:
        try:
            syscalls.ficlone(target, source)
        except OSError as error:
            if error.errno not in NO_REFLINK:
                raise
            counts.lost.append(("links", path))
        else:
            counts.reflinked += 1
            return
    copy_content(source, target, status.st_size, status.st_blocks, go_on)
    counts.copied += 1
    counts.bytes_copied += status.st_size


def keep_metadata(source: int, target: int, status: os.stat_result, counts: Counts, path: str) -> None:
    """Give the open `target` the owner, mode, extended attributes and times of the open `source`.

    What this process may not set is counted as lost of `path`, and so are the flags of chattr(1), which are not set:
    an immutable copy could not be repaired. Raises OSError.
    """
    actual = os.fstat(target)
    mode = stat.S_IMODE(status.st_mode)
    if (actual.st_uid, actual.st_gid) != (status.st_uid, status.st_gid) and not _keep_owner(target, status):
        counts.lost.append(("ownership", path))
        mode &= ~_SET_ID
    os.fchmod(target, mode)
    _keep_xattrs(source, target, counts, path)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    flags = syscalls.inode_flags(source)
    if flags and not set(flags) <= set(syscalls.inode_flags(target)):  # a directory hands some on to what is made in it
        counts.lost.append(("flags", path))


def _keep_owner(target: int, status: os.stat_result) -> bool:
    try:
        os.fchown(target, status.st_uid, status.st_gid)
    except OSError as error:
        if error.errno not in _NO_OWNERSHIP:
            raise
        return False
    return True


def _keep_xattrs(source: int, target: int, counts: Counts, path: str) -> None:
    try:
        names = os.listxattr(source)
    except OSError as error:
        if error.errno not in _NO_XATTR:
            raise
        return
    for name in os.listxattr(target):
        if name not in names and attributes.is_own(name):  # an ACL that the directory above hands on
            os.removexattr(target, name)
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError as error:  # noqa: PERF203  # few files have any
            if error.errno not in _NO_XATTR:
                raise
            if _value(target, name) != _value(source, name):  # the label that a security module gives by itself
                counts.lost.append(("capabilities" if name == attributes.CAPABILITY else "attributes", path))


def _value(descriptor: int, name: str) -> bytes | None:
    try:
        return os.getxattr(descriptor, name)
    except OSError as error:
        if error.errno not in _NO_XATTR:
            raise
        return None


def copy_symlink(path: str, source: int, target: int, status: os.stat_result, counts: Counts) -> None:
    """Copy the symbolic link at the last part of `path` from the directory `source` to `target`. Raises OSError."""
    name = path.rpartition("/")[2]
    os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    _keep_path_metadata(path, target, status, counts)


def copy_special(path: str, target: int, status: os.stat_result, counts: Counts) -> None:
    """Make the fifo, socket or device again in the directory `target`, by the last part of `path`. Raises OSError."""
    name = path.rpartition("/")[2]
    os.mknod(name, status.st_mode, status.st_rdev, dir_fd=target)
    _keep_path_metadata(path, target, status, counts)
    os.chmod(name, stat.S_IMODE(status.st_mode), dir_fd=target)


def _keep_path_metadata(path: str, target: int, status: os.stat_result, counts: Counts) -> None:
    name = path.rpartition("/")[2]
    actual = os.stat(name, dir_fd=target, follow_symlinks=False)
    if (actual.st_uid, actual.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.chown(name, status.st_uid, status.st_gid, dir_fd=target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_OWNERSHIP:
                raise
            counts.lost.append(("ownership", path))
    os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=target, follow_symlinks=False)


def make_private(path: Path) -> None:
    """Replace the regular file at `path` by a copy of its own, so that editing it in place is safe.

    For steps that edit in place: hard links to the same file elsewhere keep the old content. Does
    nothing for a file that has no other link. The copy takes its place by one rename. Raises OSError.
    """
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        if status.st_nlink > 1:
            _replace_by_copy(path, source, status)
    finally:
        os.close(source)


def _replace_by_copy(path: Path, source: int, status: os.stat_result) -> None:
    fresh = path.with_name(path.name + ".envmedic-private")
    fresh.unlink(missing_ok=True)  # of a process that was killed here
    target = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        counts = Counts()
        reflink_or_copy(source, target, status, counts, path.name, reflink=True, go_on=lambda: None)
        keep_metadata(source, target, status, counts, path.name)
        fresh.replace(path)
    except BaseException:
        fresh.unlink()
        raise
    finally:
        os.close(target)
