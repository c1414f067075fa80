"""One walk over an environment: which files it has, of which sizes, and a digest of all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MARKER = ".envmedic-tx"
"""Name of the marker file in a clone's root; it belongs to envmedic, not to the environment."""
UV_LOCK = ".lock"
"""Name of uv's lock file in the root of a virtual environment: empty, and made by each uv that installs there."""
NOT_INSTALLED = frozenset({MARKER, UV_LOCK})
"""Files in the root that no comparison counts."""

KINDS = {stat.S_IFREG: "f", stat.S_IFDIR: "d", stat.S_IFLNK: "l"}
TYPE, PERMISSIONS = 0o170000, 0o7777
"""Bits of `st_mode`, as `stat.S_IFMT` and `stat.S_IMODE` take them, without thirty thousand calls."""
_FILE, _DIRECTORY = stat.S_IFREG, stat.S_IFDIR
_VANISHED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class WalkResult(NamedTuple):
    """What one walk over a prefix tells."""

    digest: str
    """See `digest`."""
    sizes: dict[str, int]
    """Bytes of each regular file by its path relative to the prefix, byte-code caches left out."""


def digest(prefix: str | os.PathLike[str]) -> str:
    """Return a SHA-256 that changes whenever an installed file does; a faithful clone has the same.

    Covers path, type, size, mtime and mode (for directories path and mode only); byte-code caches,
    the marker and uv's lock file are left out. Raises OSError as `fingerprint` does.
    """
    return survey(prefix).digest


def survey(prefix: str | os.PathLike[str]) -> WalkResult:
    """Return the digest of a tree and the sizes of its files. Raises OSError as `fingerprint` does."""
    lines: list[str] = []
    sizes: dict[str, int] = {}
    for base, entries in directories(prefix, caches=False):
        for entry in entries:  # not by `walk`: a tenth of the time is that of handing on what it finds
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # removed since it was listed
                continue
            name, mode = base + entry.name, status.st_mode
            if mode & TYPE == _FILE:  # nearly all: the line of `digest_line`, without the call
                size = sizes[name] = status.st_size
                lines.append(f"{name}\0f\0{size}\0{status.st_mtime_ns}\0{mode & PERMISSIONS}\n")
            elif mode & TYPE == _DIRECTORY:
                lines.append(digest_line(name, "d", 0, 0, mode & PERMISSIONS))
            else:
                kind = KINDS.get(mode & TYPE, "o")
                lines.append(digest_line(name, kind, status.st_size, status.st_mtime_ns, mode & PERMISSIONS))
    return WalkResult(digest_of_lines(lines), sizes)


def digest_line(name: str, kind: str, size: int, mtime_ns: int, mode: int) -> str:
    """What the digest covers of one path."""
    return f"{name}\0{kind}\0{size}\0{mtime_ns}\0{mode}\n"


def digest_of_lines(lines: Iterable[str]) -> str:
    """The digest of a tree by its lines, in any order."""
    left_out = tuple(f"{name}\0" for name in NOT_INSTALLED)
    text = "".join(sorted(line for line in lines if not line.startswith(left_out)))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def is_cache(name: str) -> bool:
    """Whether the relative path `name` is byte code that Python writes by itself."""
    return name.endswith(".pyc") or ("__pycache__" in name and "__pycache__" in name.split("/"))


def walk(root: str | os.PathLike[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Every path below `root`, relative to it, with its `lstat`; a directory comes before what is in it.

    Symbolic links are not followed. What vanishes is left out. Raises OSError.
    """
    for base, entries in directories(root):
        for entry in entries:
            try:
                yield base + entry.name, entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # noqa: PERF203  # removed since it was listed
                continue


def directories(root: str | os.PathLike[str], *, caches: bool = True) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Every directory of the tree, with its entries: its path relative to `root` with a slash at the end ("" for it).

    `caches` says whether byte code is among them; otherwise as `walk`. Entries can be asked only until the
    next directory is: they are looked up relative to their open directory, which spares the kernel the long paths.
    """
    pending = [""]
    top = os.path.join(root, "")  # noqa: PTH118  # with a slash at the end
    while pending:
        base = pending.pop()
        with _Listing(top + base, missing_ok=bool(base)) as listed:
            entries = listed if caches else [entry for entry in listed if not _is_cache(entry.name)]
            yield base, entries
            pending += [base + entry.name + "/" for entry in entries if entry.is_dir(follow_symlinks=False)]


def _is_cache(name: str) -> bool:
    return name == "__pycache__" or name.endswith(".pyc")


class _Listing:
    """The entries of an open directory; none when it vanished and that is `missing_ok`."""

    def __init__(self, path: str, *, missing_ok: bool) -> None:
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | (os.O_NOFOLLOW if missing_ok else 0))
        except OSError as error:
            if not missing_ok or error.errno not in _VANISHED:
                raise

    def __enter__(self) -> list[os.DirEntry[str]]:
        if self._descriptor < 0:
            return []
        with os.scandir(self._descriptor) as entries:
            return list(entries)

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
