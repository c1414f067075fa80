"""Disk space that kept trees hold alone: what their removal frees."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

_BLOCK = 512


def held_alone(*roots: Path) -> int:
    """Bytes on disk of `roots` and what is below them that nothing else shares; missing trees count nothing.

    A directory is never shared. A file counts where every hard link of it is below one of the roots: with another in the live tree, in a kept one
    that is not among them, or in a cache, its blocks stay. Blocks that a file system shares (reflinks) count in full,
    since `stat` does not tell of them. Raises OSError.
    """
    return sum(held_in_turn(roots))


def held_in_turn(roots: Sequence[Path]) -> list[int]:
    """What each of `roots` adds to those before it, once those after it are gone; as `held_alone` counts."""
    added = [0] * len(roots)
    left: dict[tuple[int, int], tuple[int, int]] = {}
    for number, root in enumerate(roots):
        for status in _entries(root):
            key = (status.st_dev, status.st_ino)
            links, first = left.get(key, (status.st_nlink, number))
            if stat.S_ISDIR(status.st_mode) or links == 1:
                added[first] += status.st_blocks * _BLOCK
            else:
                left[key] = (links - 1, first)
    return added


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
