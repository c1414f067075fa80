"""A file system as NFS is one: no exchange of two names, locks of one machine alone, attributes that are kept a while.

``python network_fs.py DIRECTORY MOUNT_POINT SECONDS`` shows a directory through FUSE; the kernel keeps names and
attributes for that long, so that what changes through another mount is seen late. Needs fusepy and libfuse 2, whose
rename knows no flags.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import fuse

_STATUS = ["st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_atime_ns", "st_ctime_ns"]
_ROOM = [
    "f_bavail",
    "f_bfree",
    "f_blocks",
    "f_bsize",
    "f_favail",
    "f_ffree",
    "f_files",
    "f_flag",
    "f_frsize",
    "f_namemax",
]


class Shown(fuse.Operations):  # type: ignore[misc]  # fusepy has no types
    """The operations, each on the directory that is shown."""

    use_ns = True

    def __init__(self, root: str) -> None:
        self._root = root

    def _at(self, path: str) -> str:
        return self._root + path

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        """What `lstat` says."""
        status = os.lstat(self._at(path)) if fh is None else os.fstat(fh)
        return {name.removesuffix("_ns"): getattr(status, name) for name in _STATUS}

    def statfs(self, path: str) -> dict[str, int]:
        """How much room there is."""
        status = os.statvfs(self._at(path))
        return {name: getattr(status, name) for name in _ROOM}

    def readdir(self, path: str, _fh: int) -> list[str]:
        """The names in a directory."""
        return [".", "..", *os.listdir(self._at(path))]

    def readlink(self, path: str) -> str:
        """Where a link leads."""
        return os.readlink(self._at(path))

    def open(self, path: str, flags: int) -> int:
        """Open a file."""
        return os.open(self._at(path), flags & ~os.O_NOFOLLOW)

    def create(self, path: str, mode: int, _fi: Any = None) -> int:
        """Make a file."""
        return os.open(self._at(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def read(self, _path: str, size: int, offset: int, fh: int) -> bytes:
        """Read from a file."""
        return os.pread(fh, size, offset)

    def write(self, _path: str, data: bytes, offset: int, fh: int) -> int:
        """Write to a file."""
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str, length: int, _fh: int | None = None) -> None:
        """Cut a file."""
        os.truncate(self._at(path), length)

    def fsync(self, _path: str, _data: int, fh: int) -> None:
        """Bring a file to disk."""
        os.fsync(fh)

    def release(self, _path: str, fh: int) -> None:
        """Close a file."""
        os.close(fh)

    def mkdir(self, path: str, mode: int) -> None:
        """Make a directory."""
        os.mkdir(self._at(path), mode)

    def rmdir(self, path: str) -> None:
        """Remove a directory."""
        os.rmdir(self._at(path))

    def unlink(self, path: str) -> None:
        """Remove a name."""
        os.unlink(self._at(path))

    def symlink(self, target: str, source: str) -> None:
        """Make a symbolic link."""
        os.symlink(source, self._at(target))

    def link(self, target: str, source: str) -> None:
        """Make a hard link."""
        os.link(self._at(source), self._at(target), follow_symlinks=False)

    def rename(self, old: str, new: str) -> None:
        """Rename."""
        os.rename(self._at(old), self._at(new))

    def chmod(self, path: str, mode: int) -> None:
        """Set permissions."""
        os.chmod(self._at(path), mode)

    def chown(self, path: str, uid: int, gid: int) -> None:
        """Set the owner."""
        os.lchown(self._at(path), uid, gid)

    def utimens(self, path: str, times: tuple[int, int]) -> None:
        """Set the times."""
        os.utime(self._at(path), ns=times, follow_symlinks=False)


if __name__ == "__main__":
    directory, place, seconds = sys.argv[1:]
    late = {f"{what}_timeout": float(seconds) for what in ("attr", "entry", "negative")}
    fuse.FUSE(
        Shown(directory), place, foreground=True, allow_other=True, default_permissions=True, use_ino=True, **late
    )
