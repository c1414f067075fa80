"""The marker: a file in the root of a repaired tree that names its transaction.

It alone says which of two trees is at the prefix, because it moves with the tree in the exchange itself. The journal
is written before or after. Clones get a marker before they go live, and the live tree one of its own when a snapshot of
it is kept: an environment without either has none, nor after an undo.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from envmedic import safe_io
from envmedic.engine.fs.durable import write_durably, write_whole
from envmedic.tree.fingerprint import MARKER

_LONGEST = 200
_NO_MARKER = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EINVAL, errno.ELOOP, errno.ENXIO})
"""The last three: a directory or FIFO, a link elsewhere, a socket."""


def write(tree: Path, transaction: str) -> None:
    """Mark `tree` as made by `transaction`; replaces the marker that its original may have had.

    The caller makes it durable, with the rest of the tree, before the tree goes live.
    """
    write_whole(tree / MARKER, f"{transaction}\n".encode(), mode=0o644, synced=False)


def write_live(prefix: Path, transaction: str) -> None:
    """Mark the live tree at `prefix`, durably and in one step; the times of its root stay as they are."""
    status = prefix.stat()
    write_durably(prefix / MARKER, f"{transaction}\n".encode(), mode=0o644)
    os.utime(prefix, ns=(status.st_atime_ns, status.st_mtime_ns))


def read(tree: Path) -> str | None:
    """The transaction that made `tree`; None for an unmarked or missing one, or where the marker is no regular file."""
    try:
        with safe_io.opened(tree / MARKER) as file:
            return file.read(_LONGEST).decode("ascii", "replace").strip() or None
    except OSError as error:
        if error.errno in _NO_MARKER:
            return None
        raise
