"""What lies outside of an environment and is reached from it by links: never changed, never deleted."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from tests.engine.world import World


def surroundings(place: Path) -> dict[str, tuple[int, int, int, int, bytes]]:
    """Everything below `place`: mode, owner, links, time of the last change, content."""
    found = {}
    for path in [place, *sorted(place.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        links = status.st_nlink if path.is_file() else 0
        found[str(path)] = (status.st_mode, status.st_uid, links, status.st_mtime_ns, content)
    return found


def entangled(prefix: Path, site: Path, outside: Path) -> None:
    """Links out of the environment wherever a tool walks, deletes or copies, and what is no file at all."""
    (outside / "folder").mkdir(parents=True)
    (outside / "folder" / "a.py").write_text("x = 1\n")
    (outside / "folder" / "a.pyc").write_bytes(b"x")
    (outside / "key").write_text("secret")
    (prefix / "share").mkdir()
    (prefix / "share" / "out").symlink_to(outside)
    (prefix / "etc").mkdir(exist_ok=True)
    (prefix / "etc" / "key").symlink_to(outside / "key")
    (site / "linked").symlink_to(outside / "folder")
    (site / "linked.py").symlink_to(outside / "folder" / "a.py")
    (site / "__pycache__").symlink_to(outside / "folder")
    (site / "up.pth").symlink_to(outside / "key")
    (site / "loop").symlink_to("loop")
    (prefix / "bin" / "tool").symlink_to(outside / "key")
    os.mkfifo(site / "pipe.py")
    plug = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(prefix)  # the name of a socket has a hundred bytes at most
    plug.bind("socket")
    plug.close()
    os.chdir(here)
    with (site / "sparse.bin").open("wb") as file:
        file.truncate(1 << 36)


def test_a_repair_and_every_way_back_leave_it_as_it_is(quick: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    entangled(quick.prefix, quick.site, outside)
    before = surroundings(outside)
    record = quick.apply()
    assert (record.failure, record.state) == (None, "done")
    assert surroundings(outside) == before
    assert quick.undo().environment == "restored"
    assert surroundings(outside) == before
    assert (quick.site / "sparse.bin").stat().st_size == 1 << 36
    assert (quick.site / "sparse.bin").stat().st_blocks < 1 << 10
    quick.prune(0)
    assert surroundings(outside) == before
    assert (quick.site / "linked").readlink() == outside / "folder"
