"""Deletion of trees that never leaves half a tree under its own name after a crash.

A tree is first renamed into the transaction's ``trash``; the removal itself may stop anywhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from envmedic.engine.fs.durable import make_directory

OnRemoved = Callable[[int], None]
"""Gets the number of files removed so far."""

_WRITABLE = stat.S_IRWXU
_REPORT_EVERY = 500


def discard(path: Path, trash: Path) -> Path:
    """Move `path` (a tree, file or link) into `trash` in one step and return its new place.

    The caller empties the trash when it may take time.
    """
    if not trash.is_dir():
        make_directory(trash)
    target = trash / _free_name(trash)
    if stat.S_ISDIR(path.lstat().st_mode):
        _open_up(path)  # moving a directory to another parent writes its `..`
    path.rename(target)
    return target


def _free_name(trash: Path) -> str:
    taken = {path.name for path in trash.iterdir()}
    return next(name for name in map(str, range(len(taken) + 1)) if name not in taken)


def empty(trash: Path, on_removed: OnRemoved | None = None) -> int:
    """Remove `trash` and all in it; returns the number of files. A missing one is empty."""
    if not trash.is_dir():
        return 0
    counter = _Counter(on_removed)
    _remove(os.fspath(trash), None, counter)
    trash.rmdir()
    counter.finish()
    return counter.files


class _Counter:
    def __init__(self, on_removed: OnRemoved | None) -> None:
        self.files = 0
        self._on_removed = on_removed

    def add(self) -> None:
        self.files += 1
        if self.files % _REPORT_EVERY == 1:
            self.finish()

    def finish(self) -> None:
        if self._on_removed is not None:
            self._on_removed(self.files)


def _remove(name: str, parent: int | None, counter: _Counter) -> None:
    """Remove what is in the directory `name` of the open directory `parent`, whatever takes the place of one meanwhile.

    Directories of a clone are its own: opening them up changes no original.
    """
    # each by its name in a descriptor: a link in the place of a directory is refused, and no path leads anywhere else
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        mode = stat.S_IMODE(os.fstat(place).st_mode)
        if mode & _WRITABLE != _WRITABLE:
            os.chmod(f"/proc/self/fd/{place}", mode | _WRITABLE)  # noqa: PTH101  # the file itself, not its path
        directory = os.open(".", os.O_RDONLY, dir_fd=place)
    finally:
        os.close(place)
    try:
        with os.scandir(directory) as entries:
            listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for inside, is_directory in listed:
            if is_directory:
                _remove(inside, directory, counter)
                os.rmdir(inside, dir_fd=directory)
            else:
                os.unlink(inside, dir_fd=directory)
                counter.add()
    finally:
        os.close(directory)


def _open_up(directory: Path) -> None:
    """Give the owner the right to list and change a directory, where it is missing."""
    mode = stat.S_IMODE(directory.lstat().st_mode)
    if mode & _WRITABLE != _WRITABLE:
        directory.chmod(mode | _WRITABLE)
