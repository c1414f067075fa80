"""A conda library that is too old for a module is told by the record of the module's package, and conda brings a newer one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Shell
from tests.conda.referee import Referee, builds
from tests.envs.conda_unmet.case import SITE, build
from tests.gallery.repair_gallery.conda.files import scan
from tests.real.manifest import manifest

pytestmark = [pytest.mark.long, pytest.mark.conda]


def imported(prefix: Path) -> str:
    """What Python says of the module."""
    code = "import grid; print(grid.threads)"
    done = subprocess.run([prefix / "bin/python", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("versioned", [False, True])
def test_conda_brings_the_release_that_the_module_needs(tmp_path: Path, *, versioned: bool) -> None:
    room, prefix = build(tmp_path, versioned=versioned)
    said = imported(prefix)
    assert ("version `SOLVE_2.0' not found" if versioned else "undefined symbol: solve_threads") in said
    (tmp_path / "error.log").write_text(said)
    before, complaints = manifest(prefix), Referee(room).doctor(prefix)
    user = Shell(room.home, room.environment)
    for log in ([], ["--log", str(tmp_path / "error.log")]):
        found = user.envmedic("diagnose", "-p", str(prefix), "--json", *log[1:])
        [first, *_] = found.document["findings"]
        assert (first["playbook"], first["confirmed"]) == ("conda-unmet", True), found.told()
    done = user.envmedic(
        "apply", "-p", str(prefix), "--yes", "--no-gpu", "--json", "--log", str(tmp_path / "error.log")
    )
    assert done.code == 0, done.told()
    assert [(item["name"], item["after"]) for item in done.document["plan"]["changes"]] == [("libsolve", "2.0")]
    assert (imported(prefix), scan(prefix)) == ("2\n", [])
    Referee(room).judge(prefix, before=complaints)
    assert user.envmedic("undo", "-p", str(prefix), "--yes").code == 0
    assert manifest(prefix) == before


def test_words_are_of_the_library_where_no_record_says_which_release_it_is(tmp_path: Path) -> None:
    room, prefix = build(tmp_path, versioned=False)
    record = prefix / "conda-meta/grid-1.0-py311_0.json"
    record.write_text(record.read_text().replace("libsolve >=2.0,<3.0a0", "libsolve"))
    (tmp_path / "error.log").write_text(imported(prefix))
    before, versions = manifest(prefix), builds(prefix)
    user = Shell(room.home, room.environment)
    done = user.envmedic("apply", "-p", str(prefix), "--yes", "--no-gpu", "--log", str(tmp_path / "error.log"))
    told = " ".join((done.out + done.err).split())
    assert done.code == 1, told
    assert "Nothing here says which release of which library defines solve_threads" in told
    assert f"{SITE}/grid.cpython-311-x86_64-linux-gnu.so of grid looks for it" in told
    assert (manifest(prefix), builds(prefix)) == (before, versions)
