"""Small durable files and their ownership: what the journal and the records are written with."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from envmedic.engine.fs.exchange import sync_directory
from envmedic.owner import User, files_of


@dataclass(frozen=True)
class Owner:
    """The user and group that the environment belongs to."""

    uid: int
    gid: int

    @classmethod
    def of(cls, path: Path) -> Owner:
        """The owner of `path`, itself and not what it links to."""
        status = path.lstat()
        return cls(status.st_uid, status.st_gid)


def as_owner_of(directory: Path) -> AbstractContextManager[None]:
    """Let root reach and make files as whom `directory` belongs to, who may have put links in it or in its place.

    Anybody else acts for themselves. Raises OSError.
    """
    # lstat: the owner of a planted link is its author, not the owner of the target.
    status = directory.lstat()
    if os.geteuid() != 0 or status.st_uid == 0:
        return nullcontext()
    gid = status.st_gid
    return files_of(User(uid=status.st_uid, gid=gid, groups=(gid,), name=str(status.st_uid), home="/"))


def give(path: Path, owner: Owner | None) -> None:
    """Let `path` belong to `owner`. Only root can, and only root needs to: others own what they write."""
    if owner is not None and os.geteuid() == 0 and Owner.of(path) != owner:
        os.chown(path, owner.uid, owner.gid, follow_symlinks=False)


def make_directory(path: Path, owner: Owner | None = None) -> None:
    """Make a directory that only its owner can enter."""
    with as_owner_of(path.parent):
        path.mkdir(mode=0o700)
    give(path, owner)


def write_durably(path: Path, content: bytes, owner: Owner | None = None, *, mode: int = 0o600) -> None:
    """Replace `path` by a new file with `content`: whole or not at all, and on disk on return.

    It is always a new inode, so that a hard link of the old file keeps its content.
    """
    write_whole(path, content, owner, mode=mode)
    sync_directory(path.parent)


def write_whole(
    path: Path, content: bytes, owner: Owner | None = None, *, mode: int = 0o600, synced: bool = True
) -> None:
    """As `write_durably`, for a caller that syncs the directory, or without `synced` the whole file system.

    Where it cannot be written, on a full disk say, nothing is left of the attempt.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with as_owner_of(path.parent):
        temporary.unlink(missing_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        _fill(fd, content, owner, mode, synced=synced)
        with as_owner_of(path.parent):
            temporary.rename(path)
    except OSError:
        with suppress(OSError), as_owner_of(path.parent):  # what kept it from being written is what is told
            temporary.unlink()
        raise


def _fill(fd: int, content: bytes, owner: Owner | None, mode: int, *, synced: bool) -> None:
    """Write the open file and close it."""
    with open(fd, "wb") as file:  # from a descriptor
        file.write(content)
        file.flush()
        if owner is not None and os.geteuid() == 0:
            os.fchown(fd, owner.uid, owner.gid)
        os.fchmod(fd, mode)  # after open: the umask has cut the mode given there
        if synced:
            os.fsync(fd)
