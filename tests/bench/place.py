"""Where the trees of a run lie: on the checkout's file system, or on an image of ext4 with a journal.

ext4 without a journal looks for recently deleted inodes whenever it makes a directory, so that trees made
after others were deleted cost up to ten times as much there. Where that is the file system, and root may
mount, an image of its own is used; in any case each sample gets a directory of its own and nothing is
deleted before the last.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_IMAGE_BYTES = 24 << 30
"""Length of the sparse image; what it takes on disk is what is written to it."""


@dataclass(frozen=True)
class Place:
    """A directory for trees."""

    root: Path
    described: str
    """The file system, in words."""


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    """A directory below `folder` to work in, mounted for this time where need be; samples go at the end."""
    kind = filesystem(folder)
    if kind != "ext4 without a journal":
        with _samples(Place(folder, kind)) as found:
            yield found
        return
    reason = _why_no_image()
    if reason:
        slow = "distinct directories, deleted at the end only"
        with _samples(Place(folder, f"{kind} ({slow}; no image with a journal: {reason})")) as found:
            yield found
        return
    with _image(folder) as mounted, _samples(Place(mounted, "ext4 with a journal, on a loop image")) as found:
        yield found


def filesystem(folder: Path) -> str:
    """The type of the file system that holds `folder`, with what matters of ext4."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        mount, _, source = line.partition(" - ")
        if mount.split(" ")[2] == number:
            kind, name = source.split(" ")[:2]
            return kind if kind != "ext4" or _has_journal(Path(name).name) else "ext4 without a journal"
    return "an unknown file system"


def _has_journal(device: str) -> bool:
    """By the kernel thread of the journal."""
    task = Path("/sys/fs/ext4", device, "journal_task")
    return not task.is_file() or task.read_text().strip() != "<none>"


def _why_no_image() -> str:
    if os.geteuid() != 0:
        return "only root can mount one"
    missing = [name for name in ("mkfs.ext4", "mount", "umount") if shutil.which(name) is None]
    return f"there is no {missing[0]}" if missing else ""


@contextmanager
def _image(folder: Path) -> Iterator[Path]:
    image, mounted = folder / "ext4.img", folder / "mounted"
    mounted.mkdir(exist_ok=True)
    if not image.exists():
        fresh = image.with_suffix(".new")
        with fresh.open("wb") as file:
            file.truncate(_IMAGE_BYTES)
        _run("mkfs.ext4", "-q", str(fresh))
        fresh.rename(image)
    _run("mount", "-o", "loop,discard", str(image), str(mounted))  # discard: what is deleted leaves the disk
    try:
        yield mounted
    finally:
        _run("umount", str(mounted))


@contextmanager
def _samples(where: Place) -> Iterator[Place]:
    """`where`, with an empty directory ``samples`` for what shall not stay."""
    samples = where.root / "samples"
    if samples.exists():  # of a run that was killed
        shutil.rmtree(samples)
    samples.mkdir()
    try:
        yield where
    finally:
        shutil.rmtree(samples)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)
