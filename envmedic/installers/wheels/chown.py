"""Files for the owner of an environment when envmedic runs as root: copies that the owner can read."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from envmedic.errors import InstallerError, PreflightError
from envmedic.installers.wheels.wheel_files import CHUNK
from envmedic.owner import STORE, User, can_reach, files_of, owner

FICLONE = 0x40049409
"""ioctl that shares the blocks of a file (linux/fs.h)."""


def copy(stored: Path, target: Path, user: User) -> None:
    """Copy the verified wheel at `stored` to `target`, as `user` and owned by them. Raises PreflightError."""
    partial = target.with_name(target.name + ".partial")
    with stored.open("rb") as source:
        try:
            # root opens the source, the owner everything else: a link that the owner has put at the target leads root nowhere.
            with files_of(user):
                target.parent.mkdir(parents=True, exist_ok=True)
                # O_NOFOLLOW: the directory belongs to the environment, and a link in it could lead to any other file of that user.
                descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
                with os.fdopen(descriptor, "wb") as file:
                    if not share_blocks(source.fileno(), file.fileno()):
                        shutil.copyfileobj(source, file, CHUNK)
                partial.replace(target)
        except OSError as error:
            raise PreflightError(
                f"{target.name} cannot be put where {user.name} can read it",
                cause=f"{error.strerror or error} at {target.parent}",
                hint=f"Make space there, or run envmedic as {user.name}; {STORE} must be theirs",
            ) from error


def share_blocks(source: int, target: int) -> bool:
    """Whether the file system made the file `target` a reflink of `source`; both are descriptors."""
    try:
        fcntl.ioctl(target, FICLONE, source)
    except OSError:
        return False  # EXDEV: another file system; EOPNOTSUPP: no reflinks. A copy reports any real fault
    return True


def require_reachable(program: str, python: str) -> None:
    """Raise `InstallerError` unless the owner of the environment of `python` can run `program`."""
    prefix = Path(python).parent.parent
    user = owner(prefix) if prefix.is_dir() else None
    # uv in a virtual environment below /root is the common case: its mode is fine, but no one else may enter /root.
    if user is not None and not can_reach(user, Path(program)):
        raise InstallerError(
            f"{user.name}, who owns {prefix}, cannot run {program}",
            cause="As root, what changes an environment runs as its owner, who may not enter a directory on the way",
            hint=f"Install envmedic where all users can read it, such as /opt, or run it as {user.name}",
        )
