"""A broken environment with all that its repair needs, and what must hold of it whatever has happened."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from envmedic.model.base import from_json, to_json
from envmedic.model.plan import MakeExecutable, Plan, ProgramScript, Relocate, ReplaceBase, WriteScripts
from envmedic.planner.identity import named
from envmedic.tree.fingerprint import MARKER
from tests.cli.support import LIMIT_S, Done, Shell, user_of
from tests.envs.nms_cuda.case import Case, build
from tests.real.manifest import Entry
from tests.support.forking import IMPORTERS
from tests.support.venvs import uv

REAL_PACKAGES = ("django==5.1.4", "babel==2.16.0", "tzdata==2024.2", "lxml==5.3.0", "sqlparse==0.5.3", "asgiref==3.8.1")
"""Installed beside the miniature torch family where many files are wanted: some thousand modules and data, and
compiled code."""
_IMPORTS = "import django, babel, tzdata, lxml.etree"
_STORE_FILES = {".gitignore", "CACHEDIR.TAG", "locks"}
_TRANSACTION_FILES = {
    "prefix", "journal.json", "plan.json", "record.json", "events.jsonl", "fingerprint", "fingerprint-live", "env",
    "project", "project.json",
}  # fmt: skip
_HALF_WRITTEN = re.compile(r"\..*\.tmp")
"""A file whose writing SIGKILL cut: the next writing of it replaces it."""
_TRANSACTION = re.compile(r"[0-9]{8}T[0-9]{12}Z-[0-9a-f]{6}")

MOVED, PROGRAM, SCRIPT = "bin/moved", "bin/program", "bin/broken"
"""Scripts that a repair mends in place: of another path, without permission to execute, and written by nobody."""
WORK = "work"
"""A directory of the user's, made since the repair."""

Content = dict[str, tuple[str, int, str]]
"""Path → kind, mode, SHA-256 or target of a link."""


class Skipped(Exception):  # no error: a case that cannot be tried here
    """Why a case cannot be tried on this machine."""


@dataclass
class Room:
    """One environment, in a directory that nobody else uses."""

    root: Path
    case: Case
    user: Shell
    plan: Path
    old: dict[str, Entry]
    """The environment as it was found."""
    real: bool
    """Whether it has `REAL_PACKAGES`."""
    beside: set[str] = field(default_factory=set)
    """What lies beside the environment, its store apart."""
    mounts: set[str] = field(default_factory=set)
    new: Content | None = None
    """What a repair that nothing disturbs makes of it, once known."""
    program: Callable[..., Done] | None = None
    """Runs envmedic; None for a process of its own."""
    work: dict[str, Entry] = field(default_factory=dict)
    """What is in `WORK`, and has to stay with whichever environment is there."""
    hashes: dict[tuple[int, int, int], str] = field(default_factory=dict)
    """SHA-256 by inode, size and time of modification."""

    @classmethod
    def build(cls, root: Path, *, home: Path | None = None, real: bool = False, python: str = sys.executable) -> Room:
        """Make the environment in `root`, and the plan of its repair. `home` holds the user's caches."""
        case = build(root / "case", python=python)
        if real:
            _install(case)
        _break_files(case.prefix)
        user = _user(case, home or root / "home")
        made = cls(root, case, user, root / "plan.json", {}, real)
        made.plan_again()
        made.remember()
        return made

    def plan_again(self, *options: str) -> None:
        """Plan the repair of the environment as it is now."""
        done = self.user.envmedic(
            "plan", "--playbook", "nms-cuda", "-o", str(self.plan), "-p", str(self.prefix), *options
        )
        assert done.code == 0, done.told()
        plan = from_json(self.plan.read_bytes(), Plan, source="the plan")
        in_place = (
            Relocate(former="/former/env", programs=(MOVED,)),
            MakeExecutable(programs=(PROGRAM,)),
            WriteScripts(scripts=(ProgramScript(path=SCRIPT, entry_point="platform:platform"),)),
            ReplaceBase(python=os.path.realpath(self.case.python)),
        )
        self.plan.write_text(to_json(named(msgspec.structs.replace(plan, steps=(*plan.steps, *in_place)))))

    def now(self) -> Content:
        """What is there."""
        return contents(manifest_of(self.prefix, self.hashes))

    def remember(self) -> None:
        """Take the environment, and what lies around it, for what has to be there again."""
        self.old = manifest_of(self.prefix, self.hashes)
        self.beside = {path.name for path in self.prefix.parent.iterdir()} - {".envmedic"}
        self.mounts = _mounts()

    def remount(self) -> None:
        """Inodes may have other content now."""
        self.hashes.clear()

    @property
    def prefix(self) -> Path:
        """The environment."""
        return self.case.prefix

    @property
    def store(self) -> Path:
        """Where its transactions are kept."""
        return self.prefix.parent / ".envmedic"

    @property
    def temporary(self) -> Path:
        """The directory for temporary files of everything that runs here."""
        return self.user.home / "tmp"

    def repairing(self, *options: str) -> tuple[str, ...]:
        """Arguments of the repair that was planned."""
        return ("apply", str(self.plan), "--yes", "--no-gpu", "--json", "-p", str(self.prefix), *options)

    def command(self, name: str, *options: str) -> tuple[str, ...]:
        """Arguments of another command on the environment."""
        agreed = ("--yes",) if name in {"undo", "redo"} else ()
        return (name, "--json", "-p", str(self.prefix), *agreed, *options)

    def arguments(self, operation: str, *options: str) -> tuple[str, ...]:
        """Of the command line; `options` are those of a repair."""
        return self.repairing(*options) if operation == "apply" else self.command(*operation.split())

    def run(self, *arguments: str) -> Done:
        """Run envmedic to its end, and see that no process is left of it."""
        done = (self.program or self.user.envmedic)(*arguments)
        no_children(f"envmedic {arguments[0]}")
        return done

    def whole(self, operation: str, *options: str) -> Done:
        """Run an operation that must come to a good end."""
        done = self.run(*self.arguments(operation, *options))
        assert done.code == 0, done.told()
        return done

    def prepare(self, operation: str, *options: str) -> None:
        """Bring the environment to where `operation` can begin; a generation that is there serves. `options` are those of the repair."""
        if operation == "apply":
            self.take_back()
            return
        live = self.side(read=False) == "new"
        if not live and not any(self.store.glob("*/env")):
            self.whole("apply", *options)
            live = True
        if live != (operation == "undo"):
            self.whole("undo" if live else "redo")

    def learn(self, *options: str) -> None:
        """Repair undisturbed, keep what that makes of it as `new`, and take it back."""
        self.whole("apply", *options)
        self.new = self.now()
        self.take_back()

    def side(self, *, read: bool = True, where: Path | None = None) -> str:
        """``old`` or ``new``: which environment is there, whole. Raises AssertionError for anything between.

        Without `read`, a file that was read before and has the same inode, size and time is not read again; all
        are where that finds neither, since inodes and times of deleted files come again. `where` is for an
        environment that was moved aside.
        """
        root = where or self.prefix
        if not read and (side := self._side_of(manifest_of(root, self.hashes))):
            return side
        self.hashes.clear()
        found = manifest_of(root, self.hashes)
        if side := self._side_of(found):
            return side
        trees = {"old": contents(self.old), **({"new": self.new} if self.new is not None else {})}
        told = (f"not the {name} one ({_difference(tree, contents(found))})" for name, tree in trees.items())
        raise AssertionError(", ".join(told))

    def begin_work(self) -> None:
        """Make what an undo is to carry over: a file in a directory, and a link to it."""
        (self.prefix / WORK / "first run").mkdir(parents=True, mode=0o750)
        (self.prefix / WORK / "first run" / "model").write_bytes(b"weights" * 100_000)
        (self.prefix / WORK / "latest").symlink_to("first run/model")
        self.work = _work_in(manifest_of(self.prefix, self.hashes))

    def end_work(self) -> None:
        """Remove it, as if it had never been there."""
        shutil.rmtree(self.prefix / WORK)
        self.work = {}
        if (made := self.old["."][2]) != self.prefix.stat().st_mtime_ns:
            os.utime(self.prefix, ns=(made, made))

    def _side_of(self, found: dict[str, Entry]) -> str | None:
        if self.work:
            if _work_in(found) != self.work:
                return None
            found = {path: entry for path, entry in found.items() if path.split("/")[0] != WORK}
            found["."] = self.old["."]  # whose time the copies change
        if found == self.old:
            return "old"
        return "new" if self.new is not None and contents(found) == self.new else None

    def starts(self, side: str) -> None:
        """Assert that the environment starts, and that its check says what it has to: the fault is there, or gone."""
        done = self._python(
            "-c",
            f"{_IMPORTS if self.real else ''}\nimport runpy\nprint('starts')\nrunpy.run_path({str(self.case.program)!r})",
        )
        good = done.returncode == 0 and "kept boxes" in done.stdout
        said = f"the {side} environment: {done.stdout} {done.stderr}"
        assert done.stdout.startswith("starts"), said
        assert good == (side == "new"), said

    def _python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.case.python, "-B", *arguments],
            capture_output=True, text=True, check=False, timeout=LIMIT_S, env=self.user.environment(),
        )  # fmt: skip

    def generations(self) -> list[dict[str, Any]]:
        """The history, after the recovery of what was interrupted."""
        self.whole("recover")
        found: list[dict[str, Any]] = self.whole("history").document["generations"]
        return found

    def settled(self, *, start: bool = True) -> str:
        """Assert that the environment is whole and nothing is left over; returns its side."""
        side, generations = self.side(), self.generations()
        live = [item["live"] for item in generations]
        assert any(live) == (side == "new"), f"{side}, but live: {live}"
        assert any(item["undo_possible"] for item in generations) == any(live), "the new environment cannot be undone"
        left = self.leaks()
        assert not left, left
        if start:
            self.starts(side)
        return side

    def leaks(self) -> list[str]:
        """What is left over: files, stages, mounts, a lock that is held."""
        return [*self._beside(), *self._in_store(), *self._elsewhere()]

    def _beside(self) -> list[str]:
        found = {path.name for path in self.prefix.parent.iterdir()} - self.beside - {".envmedic"}
        if (
            not self.store.exists()
        ):  # a probe that the disk did not let go of goes with the next repair, which makes one
            found = {name for name in found if not name.startswith(".envmedic-probe-")}
        return [f"beside the environment: {name}" for name in sorted(found)]

    def _in_store(self) -> list[str]:
        if not self.store.is_dir():
            return []
        found = []
        for path in sorted(self.store.iterdir()):
            if _TRANSACTION.fullmatch(path.name):
                names = {item.name for item in path.iterdir() if not _HALF_WRITTEN.fullmatch(item.name)}
                names -= _TRANSACTION_FILES
                found += [f"in a transaction: {name}" for name in sorted(names)]
                state = json.loads((path / "journal.json").read_bytes())["state"]
                if state not in {"done", "undone"} and (path / "env").exists():
                    found.append(f"the stage of a transaction that is {state}")
            elif path.name not in _STORE_FILES and not _HALF_WRITTEN.fullmatch(path.name):
                found.append(f"in the store: {path.name}")
        return found + [f"held lock: {path.name}" for path in self.store.glob("locks/*") if not _free(path)]

    def _elsewhere(self) -> list[str]:
        temporary = [f"temporary: {path.name}" for path in self.temporary.iterdir()]
        cache = [f"in the cache: {path.name}" for path in self.user.home.rglob("*.part")]
        return [*temporary, *cache, *(f"mounted: {line}" for line in sorted(_mounts() - self.mounts))]

    def take_back(self) -> None:
        """Bring the old environment back to the byte, by `undo` if the new one is there, and forget the history."""
        if self.side(read=False) == "new":
            self.whole("undo")
            assert self.side(read=False) == "old", "undo did not bring the old environment back"
        self.forget()

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Put a copy of the old environment in its place where the case in the block fails, for those that follow."""
        kept = self.root / "kept"
        if not kept.exists():
            shutil.copytree(self.prefix, kept, symlinks=True)
        try:
            yield
        except (AssertionError, OSError, ValueError, KeyError, subprocess.SubprocessError):
            self._replace_by(kept)
            raise

    def _replace_by(self, kept: Path) -> None:
        left = [path for path in self.prefix.parent.iterdir() if path.name not in self.beside]
        for path in (self.prefix, *left, *self.temporary.iterdir()):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        shutil.copytree(kept, self.prefix, symlinks=True)
        self.hashes.clear()

    def forget(self) -> None:
        """Delete the store."""
        if self.store.exists():
            shutil.rmtree(self.store)


def _work_in(found: dict[str, Entry]) -> dict[str, Entry]:
    """All of `WORK` but the time of a link, which stays that of its making."""
    mine = {path: entry for path, entry in found.items() if path.split("/")[0] == WORK}
    return {
        path: (entry[0], entry[1], 0 if entry[0] == "link" else entry[2], *entry[3:]) for path, entry in mine.items()
    }


def _break_files(prefix: Path) -> None:
    for name, mode in ((MOVED, 0o755), (PROGRAM, 0o640), (SCRIPT, 0o755)):
        (prefix / name).write_text("#!/former/env/bin/python\n")
        (prefix / name).chmod(mode)


def _install(case: Case) -> None:
    command = [uv(), "pip", "install", "--quiet", "--link-mode=copy", "--compile-bytecode"]
    subprocess.run([*command, "--python", str(case.python), "--no-deps", *REAL_PACKAGES], check=True)


def _user(case: Case, home: Path) -> Shell:
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    user = user_of(case, home).having(TMPDIR=str(home / "tmp"))
    return replace(user, forked=False)  # every child of this process is counted


def manifest_of(root: Path, hashes: dict[tuple[int, int, int], str]) -> dict[str, Entry]:
    """As `tests.real.manifest`, which reads every file each time: what is in `hashes` is not read, the rest is added."""
    pending, found = [os.fspath(root)], {".": _entry(os.fspath(root), root.lstat(), hashes)}
    start = len(pending[0]) + 1
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                found[entry.path[start:]] = _entry(entry.path, status, hashes)
                if stat.S_ISDIR(status.st_mode):
                    pending.append(entry.path)
    return found


def _entry(path: str, status: os.stat_result, hashes: dict[tuple[int, int, int], str]) -> Entry:
    if stat.S_ISLNK(status.st_mode):
        return ("link", status.st_mode, status.st_mtime_ns, 0, os.readlink(path))  # noqa: PTH115  # ten thousand times
    if stat.S_ISDIR(status.st_mode):
        return ("directory", status.st_mode, status.st_mtime_ns, 0, "")
    key = (status.st_ino, status.st_size, status.st_mtime_ns)
    if key not in hashes:
        with open(path, "rb") as file:  # noqa: PTH123  # as above
            hashes[key] = hashlib.sha256(file.read()).hexdigest()
    return ("file", status.st_mode, status.st_mtime_ns, status.st_size, hashes[key])


def contents(found: dict[str, Entry]) -> Content:
    """What two trees made at different times have in common: kinds, modes and content, without caches and marker."""
    return {
        path: (entry[0], entry[1], entry[4])
        for path, entry in found.items()
        if path != MARKER and "__pycache__" not in path
    }


def _difference(one: Content, other: Content) -> str:
    paths = sorted(path for path in {*one, *other} if one.get(path) != other.get(path))
    return f"{len(paths)} paths differ, such as {', '.join(paths[:3])}"


def _mounts() -> set[str]:
    return {line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()}


def _free(lock: Path) -> bool:
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


KEPT: set[int] = set()
"""Children of this process that are meant to run."""


def children() -> list[int]:
    """Processes whose parent is this one, zombies too; orphans come here once `adopt_orphans` was called.

    Those in which tests run commands stay until the tests end.
    """
    found: list[int] = []
    for path in Path("/proc/self/task").glob("*/children"):
        found += map(int, path.read_text().split())
    return [pid for pid in found if pid not in KEPT | IMPORTERS]


def no_children(of: str, limit_s: float = 300.0) -> int:
    """Wait until every orphan has ended and been reaped; returns how many there were. Raises AssertionError."""
    deadline, reaped = time.monotonic() + limit_s, 0
    while left := children():
        for pid in left:
            reaped += os.waitpid(pid, os.WNOHANG)[0] == pid
        assert time.monotonic() < deadline, f"{of} left processes: {list(map(_words, left))}"
        time.sleep(0.002)
    return reaped


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return f"process {pid}, which ended"


def told(done: Done, code: int, says: Sequence[str] = ()) -> str:
    """Assert that a command failed with `code` and says what happened, why, and what to do; returns the first."""
    assert done.code == code, done.told()
    document = done.document
    error = document if document["schema"].startswith("envmedic.error/") else document["failure"]
    assert error is not None, done.told()
    assert error["summary"], done.told()
    assert error["cause"], f"no cause: {done.told()}"
    assert error["hint"], f"no next step: {done.told()}"
    text = " ".join(str(error[key]) for key in ("summary", "cause", "hint"))
    assert all(word in text for word in says), f"{says} not all in: {text}"
    return str(error["summary"])
