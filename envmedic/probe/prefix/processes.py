"""Processes that use an environment, found in /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from envmedic.model.ports import ProcessUser
from envmedic.probe.readable import names, read_bytes
from envmedic.probe.text import encodable
from envmedic.redact import redact_words

PROC = Path("/proc")
SHOWN = 200
_PPID, _FLAGS = 1, 6
"""Fields of /proc/PID/stat behind the name; source: proc_pid_stat(5)."""
_PF_KTHREAD = 0x00200000
"""Flag of a thread of the kernel, which maps nothing and runs no program; source: include/linux/sched.h."""
_KERNEL = -1


@dataclass(frozen=True)
class _Spellings:
    """The prefix as the user named it and with every link resolved."""

    paths: tuple[str, ...]

    @classmethod
    def of(cls, prefix: Path) -> _Spellings:
        return cls(tuple(dict.fromkeys([os.path.abspath(prefix), os.path.realpath(prefix)])))  # noqa: PTH100  # abspath keeps links, as wanted

    def holds(self, path: str) -> bool:
        """Whether `path` is the prefix or lies in it."""
        return any(path == item or path.startswith(item + "/") for item in self.paths)

    def lead_elsewhere(self, root: Path) -> bool:
        """Whether a process whose root is `root` has another directory at each of the paths, as in a container.

        The inode number decides, without the device: the same network file system can be mounted twice.
        Where it cannot be read, as for processes of other users, the paths count as the same.
        """
        try:
            return all(os.stat(path).st_ino != os.stat(f"{root}{path}").st_ino for path in self.paths)  # noqa: PTH116  # joined as text
        except OSError:
            return False


def users(prefix: Path) -> tuple[ProcessUser, ...]:
    """Processes that run an interpreter or program of `prefix`, have its libraries mapped, or stand in it.

    Left out are this process and its children, and the working directory of those that started it
    (a shell that stands in the environment while envmedic runs), and those of containers with an
    environment of their own at the same path. Processes of other users can be told
    by their command line alone.
    """
    spellings = _Spellings.of(prefix)
    parents = {int(name): _parent(int(name)) for name in names(PROC) if name.isdecimal()}
    ancestors = _ancestors(os.getpid(), parents)
    found = []
    for pid, parent in parents.items():
        if parent == _KERNEL:
            continue
        # children of this process (the interpreter under observation, the checks) end with it
        if os.getpid() in _ancestors(pid, parents):
            continue
        why = _why(pid, spellings, started_us=pid in ancestors)
        if why is not None and not spellings.lead_elsewhere(PROC / str(pid) / "root"):
            found.append(ProcessUser(pid=pid, command=_command(pid), why=why))
    return encodable(tuple(found))


def _parent(pid: int) -> int:
    """Parent of a process, 0 when it is gone, `_KERNEL` for a thread of the kernel."""
    stat = read_bytes(PROC / str(pid) / "stat") or b""
    fields = stat.rpartition(b")")[2].split(maxsplit=_FLAGS + 1)  # the name in parentheses may hold anything
    if len(fields) <= _FLAGS:
        return 0
    return _KERNEL if int(fields[_FLAGS]) & _PF_KTHREAD else int(fields[_PPID])


def _ancestors(pid: int, parents: dict[int, int]) -> frozenset[int]:
    """`pid` and the chain of its parents."""
    chain: dict[int, None] = {}
    while pid and pid not in chain:
        chain[pid] = None
        pid = parents.get(pid, 0)
    return frozenset(chain)


def _why(pid: int, spellings: _Spellings, *, started_us: bool) -> str | None:
    """In which way a process uses the prefix: ``exe``, ``cwd`` or ``maps``; None when it does not."""
    folder = PROC / str(pid)
    if spellings.holds(_link(folder / "exe")) or _runs_program(folder, spellings):
        return "exe"
    if not started_us and spellings.holds(_link(folder / "cwd")):
        return "cwd"
    return "maps" if _maps(folder, spellings) else None


def _link(path: Path) -> str:
    """Target of one of /proc's links; empty when it may not be read. Deleted and renamed files keep a path."""
    try:
        return os.readlink(path).removesuffix(" (deleted)")  # noqa: PTH115  # a string is wanted
    except OSError:
        return ""


def _runs_program(folder: Path, spellings: _Spellings) -> bool:
    """Whether argv names a program of the prefix. A venv's interpreter is a link, so `exe` shows the base's."""
    argv = _argv(folder)
    # `.venv/bin/python train.py`: from where it was started, which is where most stay
    stands = _link(folder / "cwd")
    # the second word too: a console script runs as "python /prefix/bin/script"
    named = (os.path.join(stands, word) for word in argv[:2] if "/" in word)  # noqa: PTH118  # text
    if any(spellings.holds(os.path.normpath(path)) for path in named if path.startswith("/")):
        return True
    # a bare name was found by the PATH of that process, not by ours
    program = argv[0] if argv else ""
    return bool(program) and "/" not in program and spellings.holds(_on_path(program, _search_path(folder)))


def _argv(folder: Path) -> list[str]:
    data = read_bytes(folder / "cmdline") or b""
    return [os.fsdecode(word) for word in data.split(b"\0")[:-1]]


def _search_path(folder: Path) -> str:
    """PATH of a process."""
    variables = (read_bytes(folder / "environ") or b"").split(b"\0")
    return next((os.fsdecode(item[5:]) for item in variables if item.startswith(b"PATH=")), "")


def _on_path(program: str, search_path: str) -> str:
    """Where a bare program name leads to by PATH; empty when nowhere."""
    candidates: Iterable[str] = (os.path.join(item, program) for item in search_path.split(":") if item)  # noqa: PTH118
    return next((item for item in candidates if os.access(item, os.X_OK)), "")


def _maps(folder: Path, spellings: _Spellings) -> bool:
    """Whether a file of the prefix is mapped. /proc escapes line ends in names, and nothing else."""
    data = read_bytes(folder / "maps") or b""
    wanted = [os.fsencode(path) for path in spellings.paths]
    # nearly all processes end here: the lines of a thousand maps are split only where the path occurs at all
    if not any(path in data for path in wanted):
        return False
    mapped = (line.split(maxsplit=5) for line in data.splitlines())
    # five columns before the path, which anonymous mappings lack
    return any(spellings.holds(os.fsdecode(path)) for line in mapped for path in line[5:])


def _command(pid: int) -> str:
    words = _argv(PROC / str(pid))
    return (
        " ".join(redact_words(words))[:SHOWN]
        or (read_bytes(PROC / str(pid) / "comm") or b"").decode("utf-8", "replace").strip()
    )
