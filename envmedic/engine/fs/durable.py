"""Small durable files: what the journal and the records are written with."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from envmedic.engine.fs.exchange import sync_directory


def make_directory(path: Path) -> None:
    """Make a directory that only its owner can enter."""
    path.mkdir(mode=0o700)


def write_durably(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace `path` by a new file with `content`: whole or not at all, and on disk on return.

    It is always a new inode, so that a hard link of the old file keeps its content.
    """
    write_whole(path, content, mode=mode)
    sync_directory(path.parent)


def write_whole(path: Path, content: bytes, *, mode: int = 0o600, synced: bool = True) -> None:
    """As `write_durably`, for a caller that syncs the directory, or without `synced` the whole file system.

    Where it cannot be written, or is interrupted, nothing is left of the attempt.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        _fill(fd, content, mode, synced=synced)
        temporary.rename(path)
    except BaseException:
        with suppress(OSError):  # what kept it from being written is what is told
            temporary.unlink()
        raise


def _fill(fd: int, content: bytes, mode: int, *, synced: bool) -> None:
    """Write the open file and close it."""
    with open(fd, "wb") as file:  # from a descriptor
        file.write(content)
        file.flush()
        os.fchmod(fd, mode)  # after open: the umask has cut the mode given there
        if synced:
            os.fsync(fd)
