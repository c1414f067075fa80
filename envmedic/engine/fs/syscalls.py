"""Linux calls that Python's standard library lacks, through ctypes. Errors are OSError with errno."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import sys
from functools import lru_cache
from typing import Any

AT_FDCWD = -100
RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
FICLONE = 0x40049409
"""``_IOW(0x94, 9, int)`` of linux/fs.h."""
_FS_IOC_GETFLAGS = 0x80086601
"""``_IOR('f', 1, long)`` of linux/fs.h; where another number means it, as on POWER, flags are not seen."""
_FLAG_LETTERS = {0x1: "s", 0x2: "u", 0x4: "c", 0x8: "S", 0x10: "i", 0x20: "a", 0x40: "d", 0x80: "A",
                 0x10000: "D", 0x800000: "C"}  # fmt: skip
"""Those of ``FS_*_FL`` that a user sets, as chattr(1) calls them."""
OVERLAYFS_MAGIC = 0x794C7630
"""``f_type`` of overlayfs, from linux/magic.h."""

_OPENAT2_NUMBER = 437
"""The same on every architecture."""
_RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x04, 0x08
_RENAMEAT2_NUMBERS = {"x86_64": 316, "aarch64": 276, "ppc64le": 357, "s390x": 347, "riscv64": 276}
_NO_FLAGS = frozenset({errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EACCES})
_STATFS_BYTES = 256
"""Larger than struct statfs anywhere; `f_type` is its first word."""


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, *paths: str | bytes) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), *_filenames(paths))


def _filenames(paths: tuple[str | bytes, ...]) -> tuple[Any, ...]:
    return (paths[0], None, paths[1]) if len(paths) > 1 else paths


def _renameat2(source: str | os.PathLike[str], target: str | os.PathLike[str], flags: int) -> None:
    old, new = os.fsencode(source), os.fsencode(target)
    libc = _libc()
    if hasattr(libc, "renameat2"):  # glibc >= 2.28
        result = libc.renameat2(AT_FDCWD, old, AT_FDCWD, new, ctypes.c_uint(flags))
    else:
        result = _syscall_renameat2(libc, old, new, flags)
    _check(result, old, new)


def _syscall_renameat2(libc: ctypes.CDLL, old: bytes, new: bytes, flags: int) -> int:
    number = _RENAMEAT2_NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), old, None, new)
    libc.syscall.restype = ctypes.c_long
    return int(
        libc.syscall(
            ctypes.c_long(number), ctypes.c_int(AT_FDCWD), old, ctypes.c_int(AT_FDCWD), new, ctypes.c_uint(flags)
        )
    )


def rename_exchange(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> None:
    """Swap two existing paths of one file system atomically. Raises OSError (renameat2(2))."""
    _renameat2(first, second, RENAME_EXCHANGE)


def rename_noreplace(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Rename, failing with EEXIST instead of replacing `target`. Raises OSError (renameat2(2))."""
    _renameat2(source, target, RENAME_NOREPLACE)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(top: int, relative: str) -> int:
    """Open the directory `relative` to the open directory `top`, through no symbolic link. Raises OSError."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    how = _OpenHow(flags, 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_BENEATH)
    name = os.fsencode(relative)
    call = _libc().syscall
    call.restype = ctypes.c_long
    found = call(
        ctypes.c_long(_OPENAT2_NUMBER), ctypes.c_int(top), name, ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how))
    )
    if found >= 0:
        return int(found)
    number = ctypes.get_errno()
    # ENOSYS before Linux 5.6, EPERM under the profiles of some container runtimes, EAGAIN beside a rename: step by step
    if number not in {errno.ENOSYS, errno.EPERM, errno.EAGAIN}:
        raise OSError(number, os.strerror(number), relative)
    current = os.dup(top)
    for part in filter(None, relative.split("/")):
        try:
            following = os.open(part, flags, dir_fd=current)
        finally:
            os.close(current)
        current = following
    return current


def syncfs(descriptor: int) -> None:
    """Write everything cached of the file system that holds `descriptor`. Raises OSError."""
    _check(_libc().syncfs(ctypes.c_int(descriptor)))


def ficlone(target: int, source: int) -> None:
    """Make the empty file `target` share the extents of `source`. Raises OSError (ioctl_ficlone(2))."""
    fcntl.ioctl(target, FICLONE, source)


def inode_flags(descriptor: int) -> str:
    """Return the letters of the flags that chattr(1) has set on an open file or directory, sorted; "" without any."""
    try:
        raw = fcntl.ioctl(descriptor, _FS_IOC_GETFLAGS, b"\0" * ctypes.sizeof(ctypes.c_long))
    except OSError as error:
        if error.errno in _NO_FLAGS:
            return ""
        raise
    flags = int.from_bytes(raw[:4], sys.byteorder)  # the kernel writes an int, whatever the number says
    return "".join(sorted(letter for bit, letter in _FLAG_LETTERS.items() if flags & bit))


def filesystem_type(path: str | os.PathLike[str]) -> int:
    """Return `f_type` of the file system that holds `path`. Raises OSError (statfs(2))."""
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    name = os.fsencode(path)
    _check(_libc().statfs(name, buffer), name)
    word = ctypes.sizeof(ctypes.c_long)
    return int.from_bytes(buffer.raw[:word], sys.byteorder) & 0xFFFFFFFF
