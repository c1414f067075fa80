"""Cloning the entries of one directory, and which files a clone must own."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from envmedic.engine.fs.file_copy import NO_LINK, Counts, copy_special, copy_symlink, keep_metadata, reflink_or_copy
from envmedic.engine.fs.syscalls import open_beneath
from envmedic.model.registries.modes import CloneMode
from envmedic.tree.fingerprint import Fingerprint

_PRIVATE_TREES = frozenset({"bin", "etc", "conda-meta", "share/jupyter/kernels"})
_PRIVATE_SUFFIXES = (".pth", ".egg-link", ".egg-info")
_METADATA_SUFFIXES = (".dist-info", ".egg-info")


def is_private_file(name: str) -> bool:
    """Whether tools edit files of this name in place wherever they lie, so that a clone copies them."""
    return name.endswith(_PRIVATE_SUFFIXES)


def is_private_tree(path: str) -> bool:
    """Whether tools edit files in place below the directory `path`, relative to the root."""
    return path in _PRIVATE_TREES or path.endswith(_METADATA_SUFFIXES)


@dataclass(frozen=True)
class DirectoryJob:
    """A directory to clone; its twin in the target exists already."""

    path: str
    """Relative to the root, with a slash at the end; empty for the root."""
    private: bool
    """Whether every file below is copied."""


@dataclass
class Shared:
    """What all threads of one clone share."""

    source: int
    """Descriptor of the tree, as `target`: its path may lead elsewhere meanwhile."""
    target: int
    mode: CloneMode
    private: frozenset[str]
    first_of: dict[tuple[int, int], str] = field(default_factory=dict)
    """Path of the first copy of each file that has several names, by device and inode."""


def clone_directory(job: DirectoryJob, shared: Shared, counts: Counts, go_on: Callable[[], None]) -> list[DirectoryJob]:
    """Clone the entries of one directory and return its directories, made but empty, as new jobs.

    All entries of a directory are made here, so its times can be set at the end for good. A
    directory that vanished meanwhile is counted and stays empty. Raises OSError.
    """
    try:
        source = open_beneath(shared.source, job.path or ".")
    except FileNotFoundError:
        counts.lost.append(("vanished", job.path.rstrip("/")))
        return []
    try:
        target = open_beneath(shared.target, job.path or ".")
        try:
            found = _Directory(job, shared, counts, go_on).clone(source, target)
            keep_metadata(source, target, os.fstat(source), counts, job.path.rstrip("/") or ".")
        finally:
            os.close(target)
    finally:
        os.close(source)
    return found


class _Directory:
    def __init__(self, job: DirectoryJob, shared: Shared, counts: Counts, go_on: Callable[[], None]) -> None:
        self._job = job
        self._shared = shared
        self._source = self._target = -1
        self._counts = counts
        self._go_on = go_on
        self._found: list[DirectoryJob] = []

    def clone(self, source: int, target: int) -> list[DirectoryJob]:
        """Clone every entry of the open directory `source` into `target`."""
        self._source, self._target = source, target
        linking = self._shared.mode == "link" and not self._job.private and bool(self._job.path)
        is_private = self._is_private if self._shared.private else is_private_file
        with os.scandir(source) as entries:
            for entry in entries:  # what most entries are is asked first
                try:
                    if entry.is_file(follow_symlinks=False):
                        if linking and not is_private(entry.name):
                            self._link(entry.name)
                        else:
                            self._copy(entry.name, reflink=self._shared.mode == "reflink")
                    elif entry.is_dir(follow_symlinks=False):
                        self._make_directory(entry.name)
                    else:
                        self._other(entry.name, entry.stat(follow_symlinks=False))
                except FileNotFoundError:  # noqa: PERF203  # costs nothing when nothing vanishes
                    self._counts.lost.append(("vanished", self._job.path + entry.name))
        return self._found

    def _is_private(self, name: str) -> bool:
        return is_private_file(name) or self._job.path + name in self._shared.private

    def _link(self, name: str) -> None:
        try:
            os.link(name, name, src_dir_fd=self._source, dst_dir_fd=self._target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in NO_LINK:
                raise
            self._counts.lost.append(("links", self._job.path + name))
            self._copy(name, reflink=False)
        else:
            self._counts.linked += 1
            self._counts.files += 1

    def _make_directory(self, name: str) -> None:
        os.mkdir(name, 0o700, dir_fd=self._target)
        self._counts.directories += 1
        path = self._job.path + name
        private = self._job.private or is_private_tree(path)
        self._found.append(DirectoryJob(path + "/", private))

    def _other(self, name: str, status: os.stat_result) -> None:
        path = self._job.path + name
        if stat.S_ISLNK(status.st_mode):
            copy_symlink(path, self._source, self._target, status, self._counts)
            self._counts.symlinks += 1
        else:
            copy_special(path, self._target, status, self._counts)
            self._counts.special += 1

    def _copy(self, name: str, *, reflink: bool) -> None:
        self._go_on()
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._source)
        try:
            status = os.fstat(source)
            if status.st_nlink > 1 and not self._is_first(name, status):
                return
            target = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._target)
            try:
                path = self._job.path + name
                reflink_or_copy(source, target, status, self._counts, path, reflink=reflink, go_on=self._go_on)
                keep_metadata(source, target, status, self._counts, path)
            finally:
                os.close(target)
        finally:
            os.close(source)
        self._counts.files += 1

    def _is_first(self, name: str, status: os.stat_result) -> bool:
        """Whether no other name of this file was copied; else this one is linked to that copy later."""
        path = self._job.path + name
        first = self._shared.first_of.setdefault((status.st_dev, status.st_ino), path)
        if first != path:
            self._counts.deferred.append((first, path))
        return first == path


def changed_files(original: Fingerprint, clone: Fingerprint, mode: CloneMode) -> tuple[str, ...]:
    """Paths of the files that differ between an environment and its clone, made by `mode`, after some steps.

    A file that a hard link shares has another inode once it is replaced; other clones have other inodes anyway.
    """
    old, new = original.entries, clone.entries
    found = [name for name in old.keys() | new.keys() if name not in old or name not in new]
    for name in old.keys() & new.keys():
        before, after = old[name], new[name]
        if before == after or before.kind == after.kind == "d":
            continue
        if before._replace(inode=after.inode) != after or (mode == "link" and not _is_copied(name)):
            found.append(name)
    return tuple(sorted(found))


def _is_copied(name: str) -> bool:
    """Whether a clone by hard links copies a file."""
    path = PurePosixPath(name)
    folders = (str(folder) for folder in path.parents)
    return "/" not in name or is_private_file(path.name) or any(map(is_private_tree, folders))
