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

from tests.fleet.real import ENVMEDIC, TOOLS
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
    assert not changed(before, manifest(site.tree))


def test_a_killed_repair_is_settled_there_too(site: Site) -> None:
    before = manifest(site.tree)
    repair = site.repair("n1", "--witnesses", "n3", "--witness-limit", "120")
    site.until_asked_for_proof("n3")
    repair.killed()
    assert site.start("n1", *ENVMEDIC, "recover", "-p", str(site.prefix)).ended().code == 0
    assert set(site.journals().values()) == {"aborted"}
    assert not changed(before, manifest(site.tree))
