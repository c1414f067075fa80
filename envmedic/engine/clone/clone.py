"""Cloning an environment's tree beside it.

Three ways, each for another file system: shared extents (``reflink``), hard links with real copies
of what tools edit in place (``link``), or a full copy (``copy``). btrfs snapshots are left out: an
environment is hardly ever a subvolume of its own, and a reflink clone costs only a second more.

A clone costs one system call per file, so this is written for few calls: directories are opened
once, files are linked relative to them, and two threads keep both the kernel and Python busy.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from pathlib import Path

from envmedic.engine.clone.directory_entries import DirectoryJob, Shared, clone_directory
from envmedic.engine.fs import scratch, syscalls
from envmedic.engine.fs.file_copy import Counts, LossKind, make_private
from envmedic.engine.fs.syscalls import open_beneath
from envmedic.model.registries.modes import CloneMode

__all__ = ["CloneReport", "clone", "make_private", "probe_modes"]

OnFiles = Callable[[int], None]

_PROGRESS_EVERY_S = 0.1


@dataclass(frozen=True)
class CloneReport:
    """What a clone consists of."""

    mode: CloneMode
    files: int
    directories: int
    """Without the root."""
    symlinks: int
    special: int
    """Fifos, sockets and devices, made again."""
    linked: int
    reflinked: int
    copied: int
    bytes_copied: int
    """Apparent size of the copied files."""
    lost: Mapping[LossKind, tuple[str, ...]]
    """Sorted paths of which the clone lacks something, by what it is; kinds without any are left out."""
    seconds: float


def probe_modes(prefix: Path, workdir: Path) -> dict[CloneMode, str]:
    """Try each way on one file of `prefix` and return why it does not work; an empty string is success.

    `workdir` is an existing directory on the file system of the future clone. Raises OSError when
    `workdir` cannot be written.
    """
    sample = _sample(prefix)
    with scratch.scratch(workdir, scratch.names(prefix)[0]) as place:
        return {
            "reflink": _attempt(lambda: _reflink(sample, place / "reflink")),
            "link": _attempt(lambda: os.link(sample, place / "link", follow_symlinks=False)),
            "copy": "",
        }


def clone(
    source: Path,
    target: Path,
    mode: CloneMode,
    *,
    on_progress: OnFiles | None = None,
    threads: int = 2,
    private: Collection[str] = (),
) -> CloneReport:
    """Clone the tree `source` to `target`, which must not exist while its parent does.

    In mode ``link`` everything that tools edit in place becomes a real copy: files at the root,
    ``bin``, ``etc``, ``conda-meta``, ``share/jupyter/kernels``, ``*.pth``, ``*.egg-link``,
    ``*.dist-info``, ``*.egg-info``, and the paths in `private` (relative to `source`). Hard links
    between copied files are kept. Modes, owners, times and extended attributes are kept.

    `on_progress` gets the number of files done, in the calling thread, about ten times a second; it
    may raise to stop. On any error both threads have ended when it surfaces, and the partial
    `target` is left for the caller to remove. Raises OSError.
    """
    started = time.monotonic()
    target.mkdir(0o700)
    with ExitStack() as stack:
        trees = [os.open(tree, os.O_RDONLY | os.O_DIRECTORY) for tree in (source, target)]
        for tree in trees:
            stack.callback(os.close, tree)
        walk = _Walk(Shared(trees[0], trees[1], mode, frozenset(private)), on_progress)
        walk.run(threads)
        counts = walk.total()
    if on_progress is not None:
        on_progress(counts.files)
    lost: dict[LossKind, list[str]] = {}
    for kind, path in sorted(set(counts.lost)):  # a file may lack several attributes
        lost.setdefault(kind, []).append(path)
    values = {item.name: getattr(counts, item.name) for item in fields(counts) if item.name not in {"deferred", "lost"}}
    named = {kind: tuple(paths) for kind, paths in lost.items()}
    return CloneReport(mode=mode, lost=named, seconds=time.monotonic() - started, **values)


class _StoppedError(Exception):
    """Another thread failed or the caller wants to stop."""


class _Walk:
    """The threads of one clone: directories still to do, and the first failure."""

    def __init__(self, shared: Shared, on_progress: OnFiles | None) -> None:
        self._shared = shared
        self._on_progress = on_progress
        self._pending = [DirectoryJob("", private=False)]
        self._active = 0
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._counts: list[Counts] = []
        self._next_report = 0.0

    def run(self, threads: int) -> None:
        """Clone everything; the calling thread is one of the workers and the only one that reports."""
        helpers = [threading.Thread(target=self._work, args=(self._check,), daemon=True) for _ in range(threads - 1)]
        started: list[threading.Thread] = []
        try:
            with suppress(RuntimeError):  # no memory or no process for a thread: this one does all of it
                for helper in helpers:
                    helper.start()
                    started.append(helper)
            self._work(self._check_and_report)
        except BaseException as error:  # an interrupt that came between two jobs
            self._fail(error)
            raise
        finally:
            for helper in started:
                helper.join()
        if self._failure is not None:
            raise self._failure
        self._link_deferred()

    def total(self) -> Counts:
        """What all threads did so far."""
        total = Counts()
        for counts in self._counts:
            total.add(counts)
        return total

    def _work(self, go_on: Callable[[], None]) -> None:
        counts = Counts()
        self._counts.append(counts)
        try:
            while (job := self._take(go_on)) is not None:
                self._done(clone_directory(job, self._shared, counts, go_on))
        except _StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001  # surfaces in the calling thread
            self._fail(error)

    def _take(self, go_on: Callable[[], None]) -> DirectoryJob | None:
        while True:
            go_on()
            with self._changed:
                if self._pending:
                    self._active += 1
                    return self._pending.pop()
                if not self._active:
                    return None
                self._changed.wait(_PROGRESS_EVERY_S)

    def _done(self, found: list[DirectoryJob]) -> None:
        with self._changed:
            self._active -= 1
            self._pending += found
            if found or not self._active:
                self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    def _check(self) -> None:
        if self._failure is not None:
            raise _StoppedError

    def _check_and_report(self) -> None:
        self._check()
        now = time.monotonic()
        if self._on_progress is not None and now >= self._next_report:
            self._next_report = now + _PROGRESS_EVERY_S
            self._on_progress(sum(counts.files for counts in self._counts))

    def _link_deferred(self) -> None:
        """Restore the hard links between copied files, once each first copy exists."""
        for first, other in [pair for counts in self._counts for pair in counts.deferred]:
            (near, old), (beside, new) = (os.path.split(path) for path in (first, other))
            with ExitStack() as stack:
                places = [(self._shared.target, near), (self._shared.target, beside), (self._shared.source, beside)]
                opened = [open_beneath(tree, path or ".") for tree, path in places]
                for descriptor in opened:
                    stack.callback(os.close, descriptor)
                os.link(old, new, src_dir_fd=opened[0], dst_dir_fd=opened[1], follow_symlinks=False)
                self._counts[0].files += 1
                status = os.fstat(opened[2])
                os.utime(opened[1], ns=(status.st_atime_ns, status.st_mtime_ns))


def _sample(prefix: Path) -> Path:
    """A regular file of the environment's packages (or any at all), smallest of one directory."""
    for directory in (*sorted(prefix.glob("lib/python*/site-packages")), prefix):
        for top, _, names in os.walk(directory):
            files = [
                Path(top, name) for name in names if Path(top, name).is_file() and not Path(top, name).is_symlink()
            ]
            if files:
                return min(files, key=lambda path: path.stat().st_size)
    raise FileNotFoundError(errno.ENOENT, "no regular file", os.fspath(prefix))


def _attempt(action: Callable[[], None]) -> str:
    try:
        action()
    except OSError as error:
        return f"{os.strerror(error.errno or 0)} ({errno.errorcode.get(error.errno or 0, error.errno)})"
    return ""


def _reflink(sample: Path, target: Path) -> None:
    with sample.open("rb") as source, target.open("xb") as fresh:
        syscalls.ficlone(fresh.fileno(), source.fileno())
