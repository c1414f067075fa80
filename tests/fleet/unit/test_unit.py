"""The files that `make fleet-unit` makes, on machines of a small real fleet, and what is in them."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.fleet import real
from tests.fleet.test_ansible import good
from tests.fleet.unit import bundle
from tests.fleet.unit.__main__ import pex
from tests.fleet.unit.archive import install_only
from tests.fleet.unit.test_start import PROGRAMS
from tests.install.packages import build

MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"
PEX = real.ROOT / "dist" / "envmedic-node.pex"
FLAGS = real.unshare_flags()
needs_namespaces = pytest.mark.skipif(FLAGS is None, reason="no private mount namespaces here")
needs_an_index = pytest.mark.skipif(not real.ALL, reason="asks the package index: `make fleet` does that")


def nodes_are_repaired(room: Path, *unit: str) -> None:
    """Repair two machines and undo one, without an index, uv or envmedic there."""
    assert FLAGS is not None
    fleet = real.build(room, 2, FLAGS)
    prefix, plan = str(fleet.case.prefix), room / "plan.json"
    wheels = fleet.room / "wheels"
    how = ("-p", prefix, "--for-class", "--log", str(real.LOG), "--no-gpu", "-o", str(plan))
    good(fleet.as_node("n1", *unit, "plan", *how))
    (fleet.room / "site" / "wheels").rename(wheels)
    for node in fleet.nodes:
        for part in ("index", "wheels"):
            shutil.rmtree(fleet.room / "nodes" / node / part)
    words = ("apply", str(plan), "--yes", "--json", "--no-gpu", "--offline", "--find-links", str(wheels))
    for node in fleet.nodes:
        assert json.loads(good(fleet.as_node(node, *unit, *words)))["outcome"] == "repaired"
        assert fleet.works(node)
    again = json.loads(good(fleet.as_node("n2", *unit, *words)))
    assert again["outcome"] == "already"
    good(fleet.as_node("n2", *unit, "undo", "--plan", str(plan), "--yes"))
    assert not fleet.works("n2")


@needs_namespaces
@pytest.mark.skipif(not PEX.exists(), reason="the file for nodes is not made: `make fleet-unit` does that")
def test_a_node_is_repaired_and_undone_by_the_pex_and_wheels_handed_over(tmp_path: Path) -> None:
    nodes_are_repaired(tmp_path / "room", "env", "PATH=/usr/bin:/bin", real.PYTHON, str(PEX))


@needs_namespaces
@needs_an_index
def test_a_node_without_any_python_is_repaired_by_one_that_the_file_brings(tmp_path: Path) -> None:
    given = install_only(MINOR, tmp_path)
    archive = bundle.read(given, hashlib.sha256(given.read_bytes()).hexdigest())
    assert (archive.machine, archive.minor) == (platform.machine(), sys.version_info[1])
    unit = bundle.make(archive, wheel(tmp_path), tmp_path)
    path = tmp_path / "path"
    path.mkdir()
    for name in (*PROGRAMS, "flock"):
        (path / name).symlink_to(str(shutil.which(name)))
    assert shutil.which("python3", path=str(path)) is None
    shared = tmp_path / "shared"
    nodes_are_repaired(tmp_path / "room", "env", f"PATH={path}", f"ENVMEDIC_NODE_ROOT={shared}", str(unit))
    assert sorted(item.suffix for item in shared.iterdir()) == ["", ".lock"], "it is unpacked once for both machines"


def wheel(room: Path) -> Path:
    return next(path for path in build(room / "packages", alone=True) if path.suffix == ".whl")


def tiny(room: Path, names: dict[str, bytes]) -> Path:
    """An archive of a few files."""
    made = room / "python.tar.gz"
    with tarfile.open(made, "w:gz") as archive:
        for name, content in names.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made


OF_AARCH64 = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00"


@needs_an_index
def test_files_for_aarch64_hold_its_compiled_modules_alone(tmp_path: Path) -> None:
    given = tiny(tmp_path, {"python/bin/python3": OF_AARCH64, "python/lib/python3.12/os.py": b""})
    own = wheel(tmp_path)
    unit = bundle.make(bundle.read(given, None), own, tmp_path)
    assert unit.name == "envmedic-node-aarch64.run"
    made = pex(own, ["python3.12"], "aarch64", tmp_path)
    with zipfile.ZipFile(made) as archive:
        heads = {name.rpartition("/")[2]: archive.open(name).read(20) for name in archive.namelist()}
    for name in ("uv", "_core.cpython-312-aarch64-linux-gnu.so", "_re2.cpython-312-aarch64-linux-gnu.so"):
        assert bundle.machine_of(heads[name]) == "aarch64"
    of_this = bundle.PythonArchive(install_only(MINOR, tmp_path), "aarch64", sys.version_info[1])
    with pytest.raises(bundle.UnitError, match=r"is not for aarch64"):
        bundle.make(of_this, own, tmp_path)


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ({"python/bin/python": b""}, "no archive with python/bin/python3"),
        ({"python/bin/python3": OF_AARCH64, "python/lib/python3.9/os.py": b""}, "no Python 3.10 or newer"),
        ({"python/bin/python3": b"#!/bin/sh", "python/lib/python3.12/os.py": b""}, "for one of: x86_64, aarch64"),
    ],
)
def test_an_archive_without_such_a_python_is_refused(names: dict[str, bytes], why: str, tmp_path: Path) -> None:
    with pytest.raises(bundle.UnitError, match=why):
        bundle.read(tiny(tmp_path, names), None)


def test_an_archive_that_is_another_file_or_none_is_refused(tmp_path: Path) -> None:
    given = tiny(tmp_path, {"python/bin/python3": OF_AARCH64, "python/lib/python3.12/os.py": b""})
    with pytest.raises(bundle.UnitError, match=r"its SHA-256 is [0-9a-f]{64}, and not 1234"):
        bundle.read(given, "1234")
    given.write_bytes(given.read_bytes()[:50])
    with pytest.raises(bundle.UnitError, match="no archive"):
        bundle.read(given, None)
    with pytest.raises(bundle.UnitError, match=r"cannot be read: .*No such file"):
        bundle.read(tmp_path / "absent", None)


def test_versions_of_pythons_elsewhere_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(bundle.UnitError, match=r"Name versions, as in python3.12, not python3"):
        pex(tmp_path / "absent.whl", ["python3"], "riscv64", tmp_path)
