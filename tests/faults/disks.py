"""File systems made for a moment, in mounts that nobody else sees and that end with this process."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.room import Skipped

_CLONE_NEWNS = 0x00020000
MEBIBYTE = 1 << 20
_MAKE = {
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}
_KERNEL = Path("/proc/filesystems")


def own_mounts() -> None:
    """Give this process and its children mounts of their own. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    run("mount", "--make-rprivate", "/")


def run(*argv: str | Path) -> None:
    """Run a command that must succeed. Raises CalledProcessError with what it said."""
    subprocess.run(argv, check=True, capture_output=True)


def known(kind: str) -> bool:
    """Whether the running kernel has a file system."""
    return any(line.split()[-1] == kind for line in _KERNEL.read_text(encoding="ascii").splitlines())


def require(kind: str, *programs: str) -> None:
    """Raise Skipped where a file system cannot be had here."""
    if os.geteuid() != 0:
        raise Skipped("only root can mount")
    if not known(kind):
        raise Skipped(f"the kernel has no {kind}")
    for program in programs:
        if shutil.which(program) is None:
            raise Skipped(f"there is no {program}")


@contextmanager
def image(folder: Path, kind: str, mebibytes: int, *make: str) -> Iterator[Path]:
    """A file system of its own in a sparse file below `folder`; `make` are options of its mkfs."""
    file = folder / f"{kind}.img"
    make_image(file, kind, mebibytes, *make)
    try:
        with mounted(folder / kind, "-o", "loop", file) as where:
            yield where
    finally:
        file.unlink()


def make_image(file: Path, kind: str, mebibytes: int, *make: str) -> None:
    """Make a file system in a new sparse file. Raises Skipped where that cannot be mounted here."""
    require(kind, _MAKE[kind][0], "mount", "umount")
    with file.open("wb") as opened:
        opened.truncate(mebibytes * MEBIBYTE)
    run(*_MAKE[kind], *make, file)


@contextmanager
def memory(folder: Path, mebibytes: int, *, inodes: int | None = None) -> Iterator[Path]:
    """A file system in memory of that size."""
    require("tmpfs", "mount", "umount")
    limit = f"size={mebibytes}m" + (f",nr_inodes={inodes}" if inodes is not None else "")
    with mounted(folder / "memory", "-t", "tmpfs", "-o", limit, "tmpfs") as where:
        yield where


@contextmanager
def mounted(point: Path, *arguments: str | Path) -> Iterator[Path]:
    """Mount something at `point` for a while."""
    point.mkdir(exist_ok=True)
    run("mount", *arguments, point)
    try:
        yield point
    finally:
        run("umount", point)


def described(path: Path) -> str:
    """The file system that holds `path`, in words."""
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()]
    number = path.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    kinds = [words[words.index("-") + 1] for words in lines if words[2] == device]
    return kinds[-1] if kinds else "an unknown file system"
