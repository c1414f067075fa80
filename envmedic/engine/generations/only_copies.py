"""Files of a kept tree that exist nowhere else: such a tree is never removed by itself."""

from __future__ import annotations

import filecmp
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from envmedic.engine.store.layout import TransactionDirectory
from envmedic.model.record import State
from envmedic.tree import fingerprint
from envmedic.wording import counted

WHOLE_TREE = "."
"""Stands for all files of a tree that cannot be compared."""
_LISTED = 20


def only_copies(directory: TransactionDirectory, state: State, prefix: Path) -> tuple[str, ...]:
    """The files and links that were added to or changed in a kept tree since its fingerprint, sorted.

    Those that the tree at `prefix` has with the same content are left out. A tree that cannot be compared gives
    `WHOLE_TREE`: a missing fingerprint is no proof that nothing would be lost.
    """
    saved = directory.live_fingerprint if state == "undone" else directory.fingerprint
    try:
        found = fingerprint.changes(fingerprint.Fingerprint.load(saved), directory.tree)
        names = sorted({*found.added, *found.changed})
        return tuple(
            name for name in names if _is_file(directory.tree / name) and not equal(directory.tree, prefix, name)
        )
    except (OSError, ValueError):
        return (WHOLE_TREE,)


def _is_file(path: Path) -> bool:
    return not stat.S_ISDIR(path.lstat().st_mode)


def equal(first: Path, second: Path, name: str) -> bool:
    """Whether both trees have `name` as a directory, or as a file or link with the same content.

    A file that cannot be read has no equal. Raises OSError.
    """
    one, other = first / name, second / name
    try:
        of_one, of_other = one.lstat(), other.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    if os.path.samestat(of_one, of_other):
        return True
    if stat.S_IFMT(of_one.st_mode) != stat.S_IFMT(of_other.st_mode):
        return False
    if stat.S_ISLNK(of_one.st_mode):
        return one.readlink() == other.readlink()
    try:
        return stat.S_ISDIR(of_one.st_mode) or (stat.S_ISREG(of_one.st_mode) and filecmp.cmp(one, other, shallow=False))
    except PermissionError:
        return False


def only_copies_told(tree: str | Path, names: Sequence[str]) -> str:
    """The files that only a kept tree has, and where it is."""
    if names == (WHOLE_TREE,):
        return f"{tree} cannot be compared, and may have files that exist nowhere else"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    listed = ", ".join(names[:_LISTED])
    what = counted(len(names), "file as it is there", "files as they are there")
    return f"Only {tree} has {what}: {listed}{more}"
