"""A repair, its undo and its redo on each file system, or the refusal that is stated."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from tests.faults import disks
from tests.faults.cases import Case
from tests.faults.room import KEPT, Room, Skipped, told

Where = AbstractContextManager[Path]
_IMAGE_MB = {"ext4": 400, "xfs": 600, "btrfs": 600}


def cases(folder: Path, *, short: bool = False) -> Iterator[Case]:
    """Every file system, each with every way to clone that it has."""
    for name, (make, clones) in {} if short else _systems(folder).items():
        for clone in clones:
            yield f"{name}, clone {clone}", partial(_round_trip, make, clone)
    yield "overlayfs, an environment in an image layer", lambda: _image_layer(folder)
    if short:
        return
    yield "ext4, mounted read-only", lambda: _read_only(folder)
    yield "an environment that is a mount point", lambda: _mount_point(folder)
    yield "something mounted in the environment", lambda: _inner_mount(folder)
    yield "NFS", _nfs


def _systems(folder: Path) -> dict[str, tuple[Callable[[], Where], tuple[str, ...]]]:
    """File system → how it is made, and the ways to clone that work on it or are refused there."""
    without, sharing = ("auto", "reflink", "copy"), ("auto", "link", "copy")
    return {
        "tmpfs": (lambda: disks.memory(folder, 300), without),
        "ext4": (lambda: disks.image(folder, "ext4", _IMAGE_MB["ext4"]), without),
        "ext4 without a journal": (lambda: disks.image(folder, "ext4", 400, "-O", "^has_journal"), ("auto",)),
        "XFS": (lambda: disks.image(folder, "xfs", _IMAGE_MB["xfs"]), sharing),
        "XFS without reflink": (lambda: disks.image(folder, "xfs", 600, "-m", "reflink=0"), ("auto", "reflink")),
        "btrfs": (lambda: disks.image(folder, "btrfs", _IMAGE_MB["btrfs"]), sharing),
        "overlayfs, an environment in the upper layer": (lambda: _overlay(folder), without),
        "FUSE (bindfs)": (lambda: fuse(folder), without),
    }


def _round_trip(make: Callable[[], Where], clone: str) -> tuple[str, str]:
    """Repair, undo and redo; or a refusal that leaves all as it is."""
    with make() as where:
        room = Room.build(where / "room")
        options = () if clone == "auto" else ("--clone", clone)
        done = room.run(*room.repairing(*options))
        if done.code != 0:
            said = told(done, 1, ("--clone",) if clone != "auto" else ())
            assert room.settled() == "old"
            return "old", f"refused: {said}"
        room.new = room.now()
        assert room.settled() == "new"
        how = f"{done.document['clone']}, {done.document['staging']}, {done.document['exchange']}"
        for operation, side in (("undo", "old"), ("redo", "new"), ("undo", "old")):
            moved = room.run(*room.command(operation))
            assert moved.code == 0, moved.told()
            assert room.settled() == side
        return "new", how


@contextmanager
def _overlay(folder: Path) -> Iterator[Path]:
    """An overlay of two directories in memory."""
    disks.require("overlay", "mount", "umount")
    with disks.memory(folder, 300) as memory:
        for name in ("lower", "upper", "work"):
            (memory / name).mkdir()
        layers = f"lowerdir={memory / 'lower'},upperdir={memory / 'upper'},workdir={memory / 'work'}"
        with disks.mounted(folder / "overlay", "-t", "overlay", "-o", layers, "overlay") as where:
            yield where


@contextmanager
def fuse(folder: Path) -> Iterator[Path]:
    """A directory in memory, shown by a program."""
    disks.require("fuse", "bindfs", "umount")
    with disks.memory(folder, 300) as memory:
        (memory / "shown").mkdir()
        where = folder / "fuse"
        where.mkdir(exist_ok=True)
        with subprocess.Popen(["bindfs", "-f", memory / "shown", where]) as shows:
            KEPT.add(shows.pid)
            try:
                while not os.path.ismount(where):
                    assert shows.poll() is None, "bindfs ended"
                    time.sleep(0.01)
                yield where
            finally:
                disks.run("umount", where)
                shows.wait()
                KEPT.discard(shows.pid)


def _image_layer(folder: Path) -> tuple[str, str]:
    """An environment that came with the image of a container cannot be moved by overlayfs."""
    disks.require("overlay", "mount", "umount")
    with disks.memory(folder, 300) as memory:
        for name in ("lower", "upper", "work"):
            (memory / name).mkdir()
        room = Room.build(memory / "lower" / "room", home=memory / "home")
        layers = f"lowerdir={memory / 'lower'},upperdir={memory / 'upper'},workdir={memory / 'work'}"
        with disks.mounted(memory / "lower", "-t", "overlay", "-o", layers, "overlay"):
            room.remember()
            said = _refused(room, "image layer", "cp -a")
        return "old", said


def _read_only(folder: Path) -> tuple[str, str]:
    with disks.image(folder, "ext4", 400) as where:
        room = Room.build(where / "room", home=folder / "home-ro")
        disks.run("mount", "-o", "remount,ro", where)
        room.remember()
        return "old", _refused(room, "read-only")


def _mount_point(folder: Path) -> tuple[str, str]:
    with disks.memory(folder, 300) as where:
        room = Room.build(where / "room")
        aside = where / "aside"
        room.prefix.rename(aside)
        with disks.mounted(room.prefix, "--bind", aside):
            room.remember()
            said = _refused(room, "mount point")
        room.prefix.rmdir()
        return "old", said


def _inner_mount(folder: Path) -> tuple[str, str]:
    with disks.memory(folder, 300) as where:
        room = Room.build(where / "room")
        (where / "data").mkdir()
        inside = room.prefix / "share" / "data"
        inside.mkdir(parents=True)
        with disks.mounted(inside, "--bind", where / "data"):
            room.plan_again()
            room.remember()
            return "old", _refused(room, "mounted inside")


def _refused(room: Room, *says: str) -> str:
    done = room.run(*room.repairing())
    said = told(done, 1, says)
    assert room.settled() == "old"
    return f"refused: {said}"


def _nfs() -> tuple[str, str]:
    if not disks.known("nfs4") and not disks.known("nfs"):
        raise Skipped("the kernel has no NFS client")
    server = Path("/proc/fs/nfsd")
    if not server.is_dir() or shutil.which("exportfs") is None or os.geteuid() != 0:
        raise Skipped("there is no NFS server in this kernel to mount from")
    raise Skipped("an export of this machine to itself is not set up")
