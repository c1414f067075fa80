"""What a clone costs on disk, before it is made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from envmedic.engine.clone.directory_entries import is_private_file, is_private_tree
from envmedic.model.registries.modes import CloneMode
from envmedic.tree import fingerprint

_BLOCK = 512
_PER_ENTRY = 4096
"""Bytes reckoned for a directory, and for a file that shares its content: its inode and its name."""


@dataclass(frozen=True)
class Size:
    """What a tree consists of, and what a clone of it takes."""

    mode: CloneMode
    """How it would be cloned."""
    files: int = 0
    directories: int = 0
    others: int = 0
    """Symbolic links, fifos, sockets and devices."""
    copied_files: int = 0
    """Files that the clone copies, and does not share in any way."""
    copied_allocated: int = 0
    """Their bytes on disk, each inode once."""

    @property
    def clone_bytes(self) -> int:
        """Upper estimate of the disk space that a clone takes at first."""
        fresh = self.files if self.mode == "reflink" else self.copied_files
        return (self.directories + self.others + fresh) * _PER_ENTRY + self.copied_allocated

    @property
    def clone_inodes(self) -> int:
        """Inodes that a clone takes."""
        return self.directories + self.others + (self.copied_files if self.mode == "link" else self.files)


def measure(root: Path, mode: CloneMode) -> Size:
    """Return the size of the tree at `root`. Raises OSError when a directory cannot be read.

    Only what `mode` copies is asked for its size: to list a tree takes a quarter of the time.
    """
    # Hard links inside one environment, as conda makes them between packages, take their blocks once.
    seen: set[tuple[int, int]] = set()
    files = directories = others = copied = allocated = 0
    for _, entry, is_shared in cloned(root, mode):
        if entry.is_dir(follow_symlinks=False):
            directories += 1
        elif not entry.is_file(follow_symlinks=False):
            others += 1
        else:
            files += 1
            if not is_shared:
                copied += 1
                allocated += _allocated(entry, seen)
    return Size(mode, files, directories, others, copied, allocated)


def cloned(root: Path, mode: CloneMode) -> Iterator[tuple[str, os.DirEntry[str], bool]]:
    """Every entry below `root`: its directory as `fingerprint.directories` has it, and whether a clone shares it.

    Raises OSError when a directory cannot be read.
    """
    private = {"": False}
    for base, entries in fingerprint.directories(root):
        copies_all = mode == "copy" or (mode == "link" and (not base or private[base]))
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                path = base + entry.name
                private[path + "/"] = private[base] or is_private_tree(path)
                yield base, entry, False
            elif entry.is_file(follow_symlinks=False):
                yield base, entry, not (copies_all or (mode == "link" and is_private_file(entry.name)))
            else:
                yield base, entry, False


def _allocated(entry: os.DirEntry[str], seen: set[tuple[int, int]]) -> int:
    """Bytes on disk of a file; 0 for one that was `seen` under another name, or vanished."""
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return 0
    key = (status.st_dev, status.st_ino)
    if key in seen:
        return 0
    if status.st_nlink > 1:
        seen.add(key)
    return status.st_blocks * _BLOCK


def free(path: Path) -> tuple[int, int | None]:
    """Return the free bytes and inodes at `path` for this user; None where inodes are not limited."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize, status.f_favail if status.f_files else None
