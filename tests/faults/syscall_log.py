"""What one process tree did to the files below a directory, call by call, as strace saw it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.support import ROOT
from tests.faults.room import Skipped

_CALLS = (
    "openat", "open", "creat", "mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat", "rename", "renameat",
    "renameat2", "unlink", "unlinkat", "rmdir", "write", "pwrite64", "writev", "copy_file_range", "sendfile", "ftruncate",
    "ioctl", "fsync", "fdatasync", "sync", "syncfs", "chdir", "fchdir",
)  # fmt: skip
_LINE = re.compile(r"(?P<pid>\d+) +(?P<call>\w+)\((?P<rest>.*)", re.DOTALL)
_UNFINISHED = re.compile(r"(?P<begin>\d+ +\w+\(.*) <unfinished \.\.\.>")
_RESUMED = re.compile(r"(?P<pid>\d+) +<\.\.\. \w+ resumed>(?P<rest>.*)")
_HEX = re.compile(r"(?:\\x[0-9a-f]{2})+")
_ARGUMENT = re.compile(r'"[^"]*"(?:\.\.\.)?|[^,"<]*<[^>]*>|[^,"]+')
_ENDED = re.compile(r"\) += (?P<result>-?\d+)")


@dataclass
class Inode:
    """A file, directory or link of the model. `data` is what was written, or where the link leads."""

    kind: str
    data: bytes = b""
    entries: dict[str, Inode] = field(default_factory=dict)
    durable: bytes | None = None
    """What is on disk of the data; None: nothing yet."""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


Change = tuple[tuple[Inode, str, "Inode | None"], ...]
"""Entries of directories that change at once: directory, name, and what it names from then on."""


@dataclass(frozen=True)
class Call:
    """One call, with paths as the kernel saw them."""

    pid: int
    name: str
    arguments: tuple[str, ...]
    result: int


def record(command: Sequence[str | Path], log: Path) -> list[Call]:
    """Run a Python program under strace; returns the calls that succeeded. Raises Skipped where strace cannot be had."""
    if shutil.which("strace") is None:
        raise Skipped("there is no strace")
    known = ",".join(f"?{name}" for name in _CALLS)
    done = subprocess.run(
        ["strace", "-f", "-y", "-xx", "-s", "10000000", "-e", f"trace={known}", "-o", log, sys.executable, *command],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "ptrace" in done.stderr and done.returncode != 0:
        raise Skipped(done.stderr.splitlines()[0])
    assert done.returncode == 0, done.stderr[-2000:]
    return [*_calls(log.read_text(encoding="ascii"))]


def _calls(text: str) -> Iterator[Call]:
    begun: dict[str, str] = {}
    for line in text.splitlines():
        whole = line
        if found := _UNFINISHED.match(line):
            begun[line.split()[0]] = found["begin"]
            continue
        if found := _RESUMED.match(line):
            whole = begun.pop(found["pid"]) + found["rest"]
        match, ended = _LINE.match(whole), _ENDED.search(whole)
        if match is None or ended is None or int(ended["result"]) < 0:
            continue
        inside = match["rest"][: match["rest"].rindex(") ")]
        shown = tuple(item.strip() for item in _ARGUMENT.findall(inside) if item.strip(" ,"))
        yield Call(int(match["pid"]), match["call"], shown, int(ended["result"]))


def _bytes(shown: str) -> bytes:
    return b"".join(bytes.fromhex(part.replace("\\x", "")) for part in _HEX.findall(shown))


class FileSystem:
    """A model of the files below `root`, to which calls are applied one by one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[tuple[int, int], Inode] = {}
        self.top = self._read(root)
        self.found = {inode: dict(inode.entries) for inode in below(self.top)}
        """The entries of each directory before the first call."""
        self._cwd: dict[int, str] = {}
        self.changes: list[Change] = []
        """All changes of entries so far."""
        self.pending: list[int] = []
        """Those that no sync has covered: their numbers in `changes`."""

    def _read(self, path: Path) -> Inode:
        """What is there, all of it on disk."""
        status = path.lstat()
        key = (status.st_dev, status.st_ino)
        if key in self._known:
            return self._known[key]
        if path.is_symlink():
            found = Inode("l", bytes(path.readlink()))
        elif path.is_dir():
            found = Inode("d", entries={item.name: self._read(item) for item in path.iterdir()})
        else:
            found = Inode("f", path.read_bytes())
        found.durable = found.data
        self._known[key] = found
        return found

    def apply(self, call: Call) -> bool:
        """Apply one call; whether it could make a difference to what a power cut leaves."""
        for item in call.arguments:
            if item.startswith("AT_FDCWD<"):
                self._cwd[call.pid] = _bytes(item).decode()
        if call.name in {"chdir", "fchdir"}:
            self._cwd[call.pid] = (
                self._path(call, 0, None) if call.name == "chdir" else _bytes(call.arguments[0]).decode()
            )
            return False
        work: Callable[[Call], bool] | None = getattr(self, f"_{call.name}", None)
        assert work is not None, f"a call that the model lacks: {call.name}"
        return work(call)

    def _path(self, call: Call, name: int, directory: int | None) -> str:
        """The path in argument `name`, relative to the descriptor in argument `directory`."""
        path = Path(_bytes(call.arguments[name]).decode())
        if path.is_absolute():
            return str(path)
        base = _bytes(call.arguments[directory]).decode() if directory is not None else self._cwd.get(call.pid, "/")
        return str(Path(base) / path)

    def _place(self, path: str) -> tuple[Inode, str] | None:
        """Directory and name of a path below the root; None for others."""
        target = Path(path)
        if not target.is_relative_to(self.root):
            return None
        directory = self.top
        parts = target.relative_to(self.root).parts
        for number, part in enumerate(parts[:-1]):
            directory = directory.entries[part]
            if directory.kind == "l":
                led = self.root.joinpath(*parts[:number], directory.data.decode(), *parts[number + 1 :])
                return self._place(os.path.normpath(led))
        return directory, target.name

    def find(self, path: str) -> Inode | None:
        """What a path names."""
        if Path(path) == self.root:
            return self.top
        place = self._place(path)
        return place[0].entries.get(place[1]) if place else None

    def _change(self, *changes: tuple[tuple[Inode, str] | None, Inode | None]) -> bool:
        change = tuple((place[0], place[1], inode) for place, inode in changes if place)
        enter(change)
        if change:
            self.pending.append(len(self.changes))
            self.changes.append(change)
        return bool(change)

    def _create(self, path: str, inode: Inode) -> bool:
        return self._change((self._place(path), inode))

    def _openat(self, call: Call) -> bool:
        return self._opened(self._path(call, 1, 0), call.arguments[2])

    def _open(self, call: Call) -> bool:
        return self._opened(self._path(call, 0, None), call.arguments[1])

    def _opened(self, path: str, flags: str) -> bool:
        place = self._place(path)
        if place is None or not {"O_CREAT", "O_TRUNC"} & {*flags.split("|")}:
            return False
        there = place[0].entries.get(place[1])
        if there is None:
            return self._create(path, Inode("f"))
        if "O_TRUNC" in flags:
            there.data = b""
        return "O_TRUNC" in flags

    def _mkdir(self, call: Call) -> bool:
        return self._create(self._path(call, 0, None), Inode("d"))

    def _mkdirat(self, call: Call) -> bool:
        return self._create(self._path(call, 1, 0), Inode("d"))

    def _symlink(self, call: Call) -> bool:
        return self._create(self._path(call, 1, None), _link(call))

    def _symlinkat(self, call: Call) -> bool:
        return self._create(self._path(call, 2, 1), _link(call))

    def _linked(self, source: str, target: str) -> bool:
        there = self.find(source)
        return there is not None and self._create(target, there)

    def _link(self, call: Call) -> bool:
        return self._linked(self._path(call, 0, None), self._path(call, 1, None))

    def _linkat(self, call: Call) -> bool:
        return self._linked(self._path(call, 1, 0), self._path(call, 3, 2))

    def _renamed(self, source: str, target: str, flags: str = "") -> bool:
        there = self.find(source)
        if there is None:
            return False
        other = self.find(target) if "EXCHANGE" in flags else None
        return self._change((self._place(source), other), (self._place(target), there))

    def _rename(self, call: Call) -> bool:
        return self._renamed(self._path(call, 0, None), self._path(call, 1, None))

    def _renameat(self, call: Call) -> bool:
        return self._renamed(self._path(call, 1, 0), self._path(call, 3, 2))

    def _renameat2(self, call: Call) -> bool:
        return self._renamed(self._path(call, 1, 0), self._path(call, 3, 2), call.arguments[4])

    def _unlink(self, call: Call) -> bool:
        return self._change((self._place(self._path(call, 0, None)), None))

    _rmdir = _unlink

    def _unlinkat(self, call: Call) -> bool:
        return self._change((self._place(self._path(call, 1, 0)), None))

    def _file(self, call: Call, argument: int = 0) -> Inode | None:
        """The file that a descriptor stands for, if it is below the root."""
        path = _bytes(call.arguments[argument]).decode("utf-8", "replace")
        return self.find(path) if path.startswith("/") else None

    def _write(self, call: Call) -> bool:
        file = self._file(call)
        if file is not None:
            file.data += _bytes(call.arguments[1])[: call.result]
        return file is not None

    _pwrite64 = _write  # of the lock alone, which is emptied before

    def _writev(self, call: Call) -> bool:
        assert self._file(call) is None, "writev is not in the model"
        return False

    def _copy_file_range(self, call: Call) -> bool:
        return self._copied(self._file(call, 0), self._file(call, 2), call.result)

    def _sendfile(self, call: Call) -> bool:
        return self._copied(self._file(call, 1), self._file(call, 0), call.result)

    @staticmethod
    def _copied(source: Inode | None, target: Inode | None, count: int) -> bool:
        if target is not None and count:
            assert source is not None, "a copy from elsewhere is not in the model"
            target.data += source.data[len(target.data) : len(target.data) + count]
        return target is not None

    def _ftruncate(self, call: Call) -> bool:
        file = self._file(call)
        if file is not None:
            size = int(call.arguments[1])
            file.data = file.data[:size].ljust(size, b"\0")
        return file is not None

    def _ioctl(self, call: Call) -> bool:
        if "FICLONE" in call.arguments[1]:
            assert self._file(call) is None, "FICLONE is not in the model"
        return False

    def _fsync(self, call: Call) -> bool:
        """What every journalling file system keeps: the data of a file; of a directory all changes that it is part of."""
        there = self._file(call)
        if there is None:
            return False
        if there.kind == "d":
            self.pending = [
                number for number in self.pending if all(place is not there for place, _, _ in self.changes[number])
            ]
        there.durable = there.data
        return True

    _fdatasync = _fsync

    def _syncfs(self, _call: Call) -> bool:
        self.pending = []
        for inode in below(self.top):
            inode.durable = inode.data
        return True

    _sync = _syncfs


def _link(call: Call) -> Inode:
    target = _bytes(call.arguments[0])
    return Inode("l", target, durable=target)


def enter(change: Change) -> None:
    """Let the entries change."""
    for directory, name, inode in change:
        if inode is None:
            directory.entries.pop(name, None)
        else:
            directory.entries[name] = inode


def below(top: Inode) -> Iterator[Inode]:
    """Everything in a directory, itself included."""
    yield top
    for inode in [*top.entries.values()]:
        yield from below(inode)
