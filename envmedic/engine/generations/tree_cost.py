"""Disk space that kept trees hold alone: what their removal frees."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_BLOCK = 512


def held_alone(*roots: Path) -> int:
    """Bytes on disk of `roots` and what is below them that nothing else shares; missing trees count nothing.

    A directory is never shared. A file counts where every hard link of it is below one of the roots: with another in the live tree, in a kept one
    that is not among them, or in a cache, its blocks stay. Blocks that a file system shares (reflinks) count in full,
    since `stat` does not tell of them. Raises OSError.
    """
    total = 0
    left: dict[tuple[int, int], int] = {}
    for root in roots:
        for status in _entries(root):
            key = (status.st_dev, status.st_ino)
            links = 0 if stat.S_ISDIR(status.st_mode) else left.get(key, status.st_nlink) - 1
            if links:
                left[key] = links
            else:
                total += status.st_blocks * _BLOCK
    return total


def _entries(root: Path) -> Iterator[os.stat_result]:
    """What `stat` says of the directory `root`, and of all below it."""
    if not root.is_dir():
        return
    yield root.stat()
    pending = [os.fspath(root)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                yield entry.stat(follow_symlinks=False)
