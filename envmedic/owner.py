"""The user whose rights a command uses, where this process is root and the environment belongs to somebody else.

Root never walks directories that another user can rename: it becomes that user, or refuses. Whatever root does itself
lies below directories that root alone can change.
"""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import stat
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from envmedic.errors import PreflightError, StorageError
from envmedic.linked_prefix import STORE, real_prefix
from envmedic.redact import is_secret

MOST_LINKS = 40
"""Symbolic links that the kernel follows in one path."""
_OF_A_HOME = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "UV_CACHE_DIR",
              "PIP_CACHE_DIR", "MAIL")  # fmt: skip
_NO_GROUP = 65534
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")


class User(msgspec.Struct, frozen=True):
    """A user that is not the present one."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    home: str
    known: bool = True
    """Whether the user database has an entry."""

    def command(self, argv: Sequence[str]) -> str:
        """Return the shell command that runs `argv` as this user."""
        become = ["sudo", "-u", self.name]
        if not self.known:  # sudo takes such a uid only where its policy says so
            become = ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]
        return shlex.join([*become, *argv])

    def variables(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return `inherited` for a process of this user: without secrets, and with this user's home."""
        own = {
            name: value
            for name, value in inherited.items()
            if name not in _OF_A_HOME and not is_secret(name, value) and not (name in _TEMPORARY and not _shared(value))
        }
        return own | {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


def owner(path: Path) -> User | None:
    """Return the owner of the program at `path` when this process is root and the owner is somebody else."""
    status = path.stat()
    return user(status.st_uid, status.st_gid) if os.geteuid() == 0 and status.st_uid != 0 else None


def user(uid: int, gid: int) -> User:
    """Return the user `uid`; one without an entry in the user database has the group `gid`, and ``/`` as home."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        own = gid or _NO_GROUP  # a directory below a set-group-ID one may have root's group, which is not its owner's
        return User(uid, own, (own,), str(uid), "/", known=False)
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return User(entry.pw_uid, entry.pw_gid, groups, entry.pw_name, entry.pw_dir)


class Waypoint(msgspec.Struct, frozen=True):
    """A directory or symbolic link on the way to an environment."""

    path: str
    uid: int
    gid: int
    link: bool = False
    open: bool = False
    """Whether users besides its owner can rename what it holds."""


class Passage(msgspec.Struct, frozen=True):
    """What the kernel passes on the way to a prefix."""

    passed: tuple[Waypoint, ...]
    """From ``/`` on, links included."""
    held: tuple[Waypoint, ...]
    """The prefix, its parent and its store, as far as they exist."""


def identity(way: Passage) -> tuple[Waypoint | None, str | None]:
    """Return whose rights a root process has to take on (None: root's own), and why it must not start, if so. Pure."""
    others = [item for item in way.held if item.uid != 0]
    if not others:
        unsafe = next((item for item in way.passed if item.uid != 0 or item.open), None)
        if unsafe is None:
            return None, None
        whose = f"belongs to uid {unsafe.uid}" if unsafe.uid else "can be changed by other users"
        return None, f"{unsafe.path} {whose}, who could put another directory in the place of the environment"
    first = others[0]
    links = (item for item in way.passed if item.link)  # whose author could lead root to a third user's environment
    strange = next((item for item in (*others, *links) if item.uid not in {0, first.uid}), None)
    if strange is not None:
        return first, f"{first.path} belongs to uid {first.uid}, and {strange.path} to uid {strange.uid}"
    return first, None


def acting_for(prefix: Path, argv: Sequence[str]) -> User | None:
    """Return the user that root has to become for the environment at `prefix`; None where this process works as it is.

    `argv` is the command for the hint. Raises PreflightError where root must not work on it, for anybody.
    """
    if os.geteuid() != 0:
        return None
    place, refusal = identity(way_to(prefix))
    whom = user(place.uid, place.gid) if place is not None else None
    if refusal is None:
        return whom
    if whom is None:
        raise PreflightError(
            f"Root does not work on {prefix}, which other users can exchange",
            cause=refusal,
            hint="Move it below directories that only root can change (mode 755), or give it to its user with chown -R",
        )
    raise PreflightError(
        f"Root does not choose between the users of {prefix}",
        cause=refusal,
        hint=f"Run it as one: {whom.command(argv)}",
    )


def require_own(prefix: Path) -> None:
    """Raise PreflightError if this process is root, and the environment at `prefix` is another user's to change."""
    argv = ("envmedic", "diagnose", "-p", str(prefix))
    whom = acting_for(prefix, argv)
    if whom is not None:
        raise PreflightError(
            f"{prefix} belongs to {whom.name}, and root does not work on it",
            cause="Its owner could lead root to any other file",
            hint=f"Run envmedic as {whom.name}: {whom.command(argv)}",
        )


def unreadable(error: PermissionError, prefix: Path) -> StorageError:
    """Return the refusal of an environment of which this user may not read a directory."""
    place = Path(os.fsdecode(error.filename or prefix))
    status, mine = place.lstat(), os.geteuid()
    whose = user(status.st_uid, status.st_gid).name
    if prefix.lstat().st_uid != mine:
        hint = (
            f"Ask for it, or run envmedic as {whose}: `chmod -R a+rX {shlex.quote(str(prefix))}` lets everybody read it"
        )
    elif status.st_uid != mine:
        hint = f"Take it back: `sudo chown -hR {user(mine, os.getegid()).name}: {shlex.quote(str(prefix))}`"
    else:
        hint = f"Let yourself read it: `chmod -R u+rX {shlex.quote(str(prefix))}`"
    left = ", as `sudo pip install` leaves what it installs" if whose == "root" else ""
    return StorageError(
        "Parts of the environment cannot be read, so nothing can be said of it",
        cause=f"{place} belongs to {whose} and has mode {stat.filemode(status.st_mode)}{left}",
        hint=hint,
    )


def way_to(prefix: Path) -> Passage:
    """Look at every directory and link on the way to `prefix`, as far as it exists. Raises OSError."""
    # one step at a time: below directories that root alone can change, what was seen stays true
    pending = [*reversed(os.path.abspath(prefix).split("/"))]  # noqa: PTH100  # keeps links
    real, links = "/", 0
    places = {real: _place(real)}
    while pending:
        name = pending.pop()
        if name in {"", ".", ".."}:
            real = os.path.dirname(real) if name == ".." else real  # noqa: PTH120  # of a path without links
            continue
        path = os.path.join(real, name)  # noqa: PTH118
        try:
            places[path] = place = _place(path)
        except (OSError, ValueError):  # missing, no path at all, or on NFS, where root is nobody: the way ends before
            real = path
            continue
        links += place.link
        if not place.link or links > MOST_LINKS:  # the kernel refuses to follow more
            real = path
            continue
        target = os.readlink(path)  # noqa: PTH115
        pending += reversed(target.split("/"))
        real = "/" if target.startswith("/") else real
    # with a link to one of its trees, what can be exchanged is the link
    parent = os.path.dirname(real_prefix(real))  # noqa: PTH120
    near = next(path for path in (real, *map(str, Path(real).parents)) if path in places)
    held = [near, *([parent] if near == real else [])]
    store = os.path.join(parent, STORE)  # noqa: PTH118
    if os.path.lexists(store):
        places[store] = _place(store)
        held.append(store)
    judged = {path: place for path, place in places.items() if not _unmapped(place.uid)}
    return Passage(tuple(judged.values()), tuple(judged[path] for path in held if path in judged))


def is_open(directory: Path) -> bool:
    """Return whether others than this user and root can put another directory or link in the place of what it holds."""
    place = _place(os.fspath(directory))
    return place.open or place.uid not in {0, os.geteuid()} or _shared(os.fspath(directory))


def _place(path: str) -> Waypoint:
    status = os.lstat(path)
    link = stat.S_ISLNK(status.st_mode)
    return Waypoint(path, status.st_uid, status.st_gid, link, not link and _open(path, status))


def _open(path: str, status: os.stat_result) -> bool:
    mode = status.st_mode
    if mode & stat.S_ISVTX or not mode & (stat.S_IWOTH | stat.S_IWGRP):
        return False
    return bool(mode & stat.S_IWOTH) or _has_members(status.st_gid) or _has_access_list(path)


def _has_access_list(path: str) -> bool:
    """Whether the bits of the group are those of everybody that an access list names."""
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except OSError:  # the file system has none
        return False


@cache
def _has_members(gid: int) -> bool:
    """Whether users other than root have the group."""
    if gid == 0:
        return False
    try:
        named = {*grp.getgrgid(gid).gr_mem} - {"root"}
    except KeyError:
        return True
    return bool(named) or any(entry.pw_gid == gid and entry.pw_uid != 0 for entry in pwd.getpwall())


@cache
def _unmapped(uid: int) -> bool:
    """Whether `uid` stands for users outside this user namespace, over whom its root has no power."""
    if uid != int(Path("/proc/sys/kernel/overflowuid").read_text(encoding="ascii")):
        return False
    return Path("/proc/self/uid_map").read_text(encoding="ascii").split() != ["0", "0", "4294967295"]


def _shared(directory: str) -> bool:
    """Whether every user may make files in `directory`."""
    try:
        mode = os.stat(directory).st_mode  # noqa: PTH116
    except OSError:
        return False
    return bool(mode & stat.S_ISVTX and mode & stat.S_IWOTH)
