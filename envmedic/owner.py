"""The owner of an environment, where this process is root and the owner is somebody else.

Root never runs what belongs to another user, and never writes by itself where that user could have put a link.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

STORE = ".envmedic"
"""Directory beside an environment that holds what envmedic keeps for it."""
_UNCHANGED = ctypes.c_uint(-1)


class User(msgspec.Struct, frozen=True):
    """A user that is not the present one."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    home: str

    def become(self) -> None:
        """Make this process theirs for good; for a child that is about to start a program."""
        os.setgroups(self.groups)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)


def owner(path: Path) -> User | None:
    """Return the owner of `path` when this process is root and the owner is somebody else.

    An owner whom the user database does not know has no further groups and ``/`` as home.
    """
    status = path.stat()
    if os.geteuid() != 0 or status.st_uid == 0:
        return None
    try:
        entry = pwd.getpwuid(status.st_uid)
    except KeyError:
        return User(status.st_uid, status.st_gid, (status.st_gid,), str(status.st_uid), "/")
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return User(entry.pw_uid, entry.pw_gid, groups, entry.pw_name, entry.pw_dir)


def wheels(prefix: Path) -> Path:
    """Where the wheels of one repair lie for an owner who cannot read root's cache; gone when it ends."""
    real = Path(os.path.realpath(prefix))
    return real.parent / STORE / "wheels" / real.name


@contextmanager
def files_of(user: User) -> Iterator[None]:
    """Let this thread reach and make files as `user` would (setfsuid(2)); root's groups stay.

    Descriptors that are open already stay usable. Raises PermissionError where the kernel does not allow it.
    """
    libc = ctypes.CDLL(None)
    group, own = libc.setfsgid(user.gid), libc.setfsuid(user.uid)
    try:
        if libc.setfsuid(_UNCHANGED) != user.uid:
            raise PermissionError(f"root may not act as uid {user.uid} here")
        yield
    finally:
        libc.setfsuid(own)
        libc.setfsgid(group)


def can_reach(user: User, path: Path) -> bool:
    """Whether `user` may read the file at `path`."""
    try:
        with files_of(user):
            os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def can_write(user: User, directory: Path) -> bool:
    """Whether `user` may make files in `directory`: tried, with a file that has no name."""
    import tempfile  # noqa: PLC0415  # only root asks

    try:
        with files_of(user), tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def has_home(user: User) -> bool:
    """Whether caches can be kept in the user's home: it is there, theirs, and so is what it has of ``.cache/uv``."""
    home = Path(user.home)
    places = (home, home / ".cache", home / ".cache" / "uv")
    try:
        with files_of(user):
            found = [path.stat() for path in places if path == home or os.path.lexists(path)]
    except OSError:
        return False
    return all(
        stat.S_ISDIR(status.st_mode) and status.st_uid == user.uid and status.st_mode & stat.S_IRWXU == stat.S_IRWXU
        for status in found
    )
