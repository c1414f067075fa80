"""What a clone costs on disk, before it is made."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from envmedic import tree
from envmedic.engine.entries import CloneMode, is_private_file, is_private_tree

_BLOCK = 512
_PER_ENTRY = 4096
"""Bytes reckoned for a directory, and for a file that shares its content: its inode and its name."""


@dataclass(frozen=True)
class Size:
    """What a tree consists of."""

    files: int = 0
    directories: int = 0
    others: int = 0
    """Symbolic links, fifos, sockets and devices."""
    allocated: int = 0
    """Bytes on disk of the files, each inode once."""
    private_files: int = 0
    """Files that a clone by hard links copies."""
    private_allocated: int = 0

    def clone_bytes(self, mode: CloneMode) -> int:
        """Upper estimate of the disk space that a clone takes at first."""
        entries = (self.directories + self.others) * _PER_ENTRY
        if mode == "link":
            return entries + self.private_allocated + self.private_files * _PER_ENTRY
        if mode == "reflink":
            return entries + self.files * _PER_ENTRY
        return entries + self.allocated

    def clone_inodes(self, mode: CloneMode) -> int:
        """Inodes that a clone takes."""
        return self.directories + self.others + (self.private_files if mode == "link" else self.files)


def measure(root: Path) -> Size:
    """Return the size of the tree at `root`. Raises OSError when a directory cannot be read."""
    seen: set[tuple[int, int]] = set()
    found = dict.fromkeys(("files", "directories", "others", "allocated", "private_files", "private_allocated"), 0)
    private = {"": False}
    for name, status in tree.walk(root):
        base, _, own = name.rpartition("/")
        if stat.S_ISDIR(status.st_mode):
            private[name] = private[base] or is_private_tree(name)
            found["directories"] += 1
        elif not stat.S_ISREG(status.st_mode):
            found["others"] += 1
        else:
            key = (status.st_dev, status.st_ino)
            size = 0 if status.st_nlink > 1 and key in seen else status.st_blocks * _BLOCK
            seen.add(key)
            found["files"] += 1
            found["allocated"] += size
            if not base or private[base] or is_private_file(own):
                found["private_files"] += 1
                found["private_allocated"] += size
    return Size(**found)


def free(path: Path) -> tuple[int, int | None]:
    """Return the free bytes and inodes at `path` for this user; None where inodes are not limited."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize, status.f_favail if status.f_files else None
