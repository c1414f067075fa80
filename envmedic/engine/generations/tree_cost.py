"""Disk space that kept trees hold alone: what their removal frees."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_BLOCK = 512


def held_alone(*roots: Path) -> int:
    """Bytes on disk of the files below `roots` that nothing else shares; missing trees count nothing.

    A file counts where every hard link of it is below one of the roots: with another in the live tree, in a kept one
    that is not among them, or in a cache, its blocks stay. Blocks that a file system shares (reflinks) count in full,
    since `stat` does not tell of them. Raises OSError.
    """
    total = 0
    left: dict[tuple[int, int], int] = {}
    for root in roots:
        for status in _files(root):
            key = (status.st_dev, status.st_ino)
            links = left.get(key, status.st_nlink) - 1
            if links:
                left[key] = links
            else:
                total += status.st_blocks * _BLOCK
    return total


def _files(root: Path) -> Iterator[os.stat_result]:
    pending = [os.fspath(root)] if root.is_dir() else []
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    yield entry.stat(follow_symlinks=False)
