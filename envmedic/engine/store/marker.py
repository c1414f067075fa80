"""The marker: a file in the root of a repaired tree that names its transaction.

It alone says which of two trees is at the prefix, because it moves with the tree in the exchange itself. The journal
is written before or after. Only clones get a marker: an environment without repairs has none, nor after an undo.
"""

from __future__ import annotations

from pathlib import Path

from envmedic.engine.fs.durable import write_whole
from envmedic.tree.fingerprint import MARKER

_LONGEST = 200


def write(tree: Path, transaction: str) -> None:
    """Mark `tree` as made by `transaction`; replaces the marker that its original may have had.

    The caller makes it durable, with the rest of the tree, before the tree goes live.
    """
    write_whole(tree / MARKER, f"{transaction}\n".encode(), mode=0o644, synced=False)


def read(tree: Path) -> str | None:
    """The transaction that made `tree`; None for an unmarked, missing or unreadably marked one."""
    try:
        with (tree / MARKER).open("rb") as file:
            return file.read(_LONGEST).decode("ascii", "replace").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
