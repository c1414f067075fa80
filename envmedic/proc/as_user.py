"""A command of envmedic's own as another user, for good: root hands the whole of it over, and waits."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

import envmedic
from envmedic.errors import PreflightError
from envmedic.owner import User
from envmedic.proc.passthrough import run_through

_PR_SET_PDEATHSIG = 1
_CAPABILITIES = (b"CapPrm", b"CapEff", b"CapAmb")


def run_as(user: User, argv: Sequence[str], said: Sequence[str]) -> int:
    """Run the command of envmedic's that `argv` starts as `user`, with this process's streams; returns its exit code.

    `said` is the command as its user typed it, for hints. The child has no way back to root's rights, and no terminal of
    this process, where a program of that user could type, or read what is typed. It ends when this process does.
    Raises PreflightError where root may not become that user, or the user cannot read envmedic.
    """
    told, tell = os.pipe()
    running = False

    def started() -> None:
        nonlocal running
        running = True
        os.close(tell)

    with os.fdopen(told, "rb") as answer:
        try:
            ending = run_through(
                argv[0],
                argv,
                {**user.variables(os.environ), **_cache(user)},
                user=user,
                prepare=partial(_require_no_way_back, user, _needed(argv), os.getpid(), tell),
                started=started,
            )
        except (OSError, subprocess.SubprocessError) as error:
            if running:
                raise
            os.close(tell)
            raise _refusal(user, answer.read().decode() or str(error), said) from error
    return ending.returncode if ending.returncode >= 0 else 128 - ending.returncode


def _needed(argv: Sequence[str]) -> tuple[str, ...]:
    """The files without which envmedic does not start."""
    script = [word for word in argv[1:2] if os.path.isfile(word)]  # noqa: PTH113  # never raises
    return (sys.executable, str(os.__file__), str(envmedic.__file__), str(msgspec.__file__), *script)


def _require_no_way_back(user: User, files: Sequence[str], parent: int, tell: int) -> None:
    """Be sure, in the child, that it is that user alone. Raises OSError, after saying why on the descriptor `tell`."""
    os.umask(os.umask(0o022) | 0o022)
    # becoming another user clears the death signal (prctl(2)), so it is set after that
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGTERM), 0, 0, 0)
    try:
        why = "the process that root waits in has ended" if os.getppid() != parent else _left_of_root(user)
        for name in files:
            os.close(os.open(name, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        why = f"{error.strerror}: {error.filename}"
    if why:
        os.write(tell, why.encode())
        raise OSError(why)


def _left_of_root(user: User) -> str:
    """What this process still has of root's rights, in words; nothing if it is `user` for good. Raises OSError."""
    identity = (os.getresuid(), os.getresgid(), {*os.getgroups()})
    if identity != ((user.uid,) * 3, (user.gid,) * 3, {*user.groups}):
        return "the identity did not change"
    # as bytes: the codec might be a module that this user cannot read
    status = Path("/proc/self/status").read_bytes().splitlines()
    if any(line.startswith(_CAPABILITIES) and int(line.split()[1], 16) for line in status):
        return "capabilities of root stay"
    try:
        os.setresuid(0, 0, 0)
    except PermissionError:
        return ""
    return "root's identity can be taken back"


def _refusal(user: User, why: str, said: Sequence[str]) -> PreflightError:
    return PreflightError(
        f"Root cannot hand this command over to {user.name}, whose environment it is",
        cause=why,
        hint=f"Install envmedic where {user.name} can read it, /opt say, and run: {user.command(said)}",
    )


def _cache(user: User) -> Mapping[str, str]:
    """Variables with a place for caches, for a user without a home of their own. Raises OSError."""
    if _has_home(user):
        return {}
    place = Path("/var/tmp", f"envmedic-cache-{user.uid}")  # noqa: S108  # its owner is looked at
    try:
        place.mkdir(mode=0o700)
    except FileExistsError:
        status = place.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != user.uid or status.st_mode & 0o022:
            place = Path(tempfile.mkdtemp(prefix=f"{place.name}-", dir=place.parent))
            os.chown(place, user.uid, user.gid, follow_symlinks=False)
    else:
        os.chown(place, user.uid, user.gid, follow_symlinks=False)
    return {"XDG_CACHE_HOME": str(place)}


def _has_home(user: User) -> bool:
    """Whether caches can be kept in the user's home: it is there, theirs, and so is what it has of ``.cache/uv``."""
    home = Path(user.home)
    try:
        found = [path.lstat() for path in (home, home / ".cache", home / ".cache" / "uv") if os.path.lexists(path)]
    except OSError:
        return False
    return os.path.isdir(home) and all(status.st_uid == user.uid for status in found)  # noqa: PTH112
