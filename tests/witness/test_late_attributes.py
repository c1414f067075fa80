"""The same on a network file system: no exchange, no locks between machines, and attributes that each keeps a while.

Each machine has a mount of its own, by FUSE. NFS and Lustre themselves were not tried.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.fleet.real import ENVMEDIC, PYTHON, TOOLS
from tests.real.manifest import changed, manifest
from tests.witness.machines import Site, flags

_PYTHON = TOOLS / "bin" / "python"
_LATE_S = 10
SERVER = Path(__file__).with_name("network_fs.py")


def _usable() -> bool:
    """Whether FUSE, libfuse 2 and fusepy are here."""
    if flags() is None or os.geteuid() != 0 or not Path("/dev/fuse").exists() or not _PYTHON.exists():
        return False
    return subprocess.run([_PYTHON, "-c", "import fuse"], capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.skipif(not _usable(), reason="root, /dev/fuse, libfuse 2 and `make fleet` (fusepy) are needed"),
    pytest.mark.long,
]


@contextmanager
def _mounted(disk: Path, at: Path) -> Iterator[Path]:
    at.mkdir(parents=True)
    with subprocess.Popen([_PYTHON, SERVER, disk, at, str(_LATE_S)]) as shows:
        try:
            while not os.path.ismount(at):
                assert shows.poll() is None, "it cannot be mounted"
                time.sleep(0.02)
            yield at
        finally:
            subprocess.run(["umount", "--lazy", at], check=True)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    shared, disk = tmp_path / "site", tmp_path / "disk"
    found = Site.build(tmp_path, shared)
    shared.rename(disk)
    shared.mkdir()
    with ExitStack() as stack:
        mounts = {name: stack.enter_context(_mounted(disk, tmp_path / "mounts" / name)) for name in ("n1", "n2", "n3")}
        found.disk, found.mounts = disk, mounts
        try:
            yield found
        finally:
            found.close()


def test_the_file_system_is_late(site: Site) -> None:
    """What the other tests are worth."""
    seen = site.mounts["n2"] / "later"
    assert not seen.exists()
    (site.mounts["n1"] / "later").touch()
    assert not seen.exists()
    site.until(seen.exists)


def test_a_witness_proves_and_sees_the_swap_late(site: Site) -> None:
    before = manifest(site.tree)
    others = [site.witness("n2"), site.witness("n3")]
    done = site.repair("n1", "--witnesses", "n2", "--machines", "n3", "--witness-limit", "120").ended()
    assert done.code == 0, done.told()
    assert done.document["exchange"] == "two-renames"
    told = {item["machine"]: (item["proved"], item["looked"]) for item in done.document["witnesses"]}
    assert told == {"n2": (True, True), "n3": (False, True)}
    assert [one.ended().code for one in others] == [0, 0]
    assert site.works()
    undone = site.start("n1", *ENVMEDIC, "undo", "-p", str(site.prefix), "--yes").ended()
    assert undone.code == 0, undone.told()
    assert not changed(before, manifest(site.tree.resolve()))


_READER = """
import json, os, sys, time
place, stop = sys.argv[1:]
seen, missed, looks = {}, [], 0
while not os.path.exists(stop):
    looks += 1
    try:
        root = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            site = os.open("lib/" + os.listdir(f"/proc/self/fd/{root}/lib")[0] + "/site-packages", os.O_RDONLY, dir_fd=root)
            names = [name for name in os.listdir(site) if name.startswith("torchvision-")]
            os.close(site)
        finally:
            os.close(root)
        seen.setdefault("+".join(names), round(time.time(), 1))
    except OSError as error:
        missed.append(f"{error} after {seen}")
    time.sleep(0.002)
print(json.dumps({"seen": seen, "missed": missed, "looks": looks}))
"""


def test_with_a_link_no_machine_ever_misses_the_environment(site: Site) -> None:
    """The first swap makes the environment a link, for which it goes; later ones and their ways back replace the link."""
    before = manifest(site.tree)
    witness = site.witness("n2")
    done = site.repair("n1", "--layout", "symlink", "--witnesses", "n2", "--witness-limit", "120").ended()
    assert done.code == 0, done.told()
    assert done.document["exchange"] == "link"
    assert "for a moment during the exchange" in done.document["notes"][1]
    assert witness.ended().code == 0
    assert site.tree.is_symlink()
    repaired = manifest(site.tree.resolve())
    stop = site.room / "stop"
    readers = [site.start(name, PYTHON, "-c", _READER, str(site.prefix), str(stop)) for name in ("n1", "n2", "n3")]
    for number, command in enumerate(("undo", "redo", "undo", "redo")):
        moved = site.start("n1", *ENVMEDIC, command, "-p", str(site.prefix), "--yes").ended()
        assert moved.code == 0, moved.told()
        assert not changed(repaired if number % 2 else before, manifest(site.tree.resolve()))
    time.sleep(_LATE_S + 2)
    stop.touch()
    for told in (reader.ended().document for reader in readers):
        assert not told["missed"], told
        assert told["looks"] > 100
        assert set(told["seen"]) <= {"torchvision-0.18.1.dist-info", "torchvision-0.20.1.dist-info"}
    assert site.works()


def test_a_killed_repair_of_a_link_is_settled_there_too(site: Site) -> None:
    assert site.repair("n1", "--layout", "symlink").ended().code == 0
    undone = site.start("n1", *ENVMEDIC, "undo", "-p", str(site.prefix), "--yes").ended()
    assert undone.code == 0, undone.told()
    before, leads = manifest(site.tree.resolve()), site.tree.readlink()
    repair = site.repair("n1", "--witnesses", "n3", "--witness-limit", "120")
    site.until_asked_for_proof("n3")
    repair.killed()
    assert site.start("n1", *ENVMEDIC, "recover", "-p", str(site.prefix)).ended().code == 0
    assert sorted(site.journals().values()) == ["aborted", "undone"]
    assert site.tree.readlink() == leads
    assert not changed(before, manifest(site.tree.resolve()))


def test_a_killed_repair_is_settled_there_too(site: Site) -> None:
    before = manifest(site.tree)
    repair = site.repair("n1", "--witnesses", "n3", "--witness-limit", "120")
    site.until_asked_for_proof("n3")
    repair.killed()
    assert site.start("n1", *ENVMEDIC, "recover", "-p", str(site.prefix)).ended().code == 0
    assert set(site.journals().values()) == {"aborted"}
    assert not changed(before, manifest(site.tree.resolve()))
