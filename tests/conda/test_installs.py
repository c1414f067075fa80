"""conda's own command behind envmedic, carried out by a real conda in a clone, and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conda.case import CondaCase
from tests.conda.channel import channels
from tests.conda.client import conda_program
from tests.conda.referee import Referee
from tests.conda.room import make_room
from tests.gallery.repair_gallery.conda.package import Content, Package, write_channel
from tests.real.manifest import manifest
from tests.support.native_case import Done

pytestmark = pytest.mark.conda
SPECS = ["python 3.11.*", "pytorch 2.4.*", "torchvision", "pytorch-cuda 12.1.*", "pip", "packaging"]


def made(root: Path) -> CondaCase:
    room = make_room(root / "room", channels().old)
    return CondaCase(room, room.by_rattler("env", SPECS), "", frozenset())


def run(case: CondaCase, *words: str) -> Done:
    return case.envmedic(*words, CONDA_EXE=str(conda_program()), CONDA_PREFIX=str(case.prefix))


def names(case: CondaCase) -> set[str]:
    return {path.name.rpartition("-")[0].rpartition("-")[0] for path in (case.prefix / "conda-meta").glob("*.json")}


def test_an_install_of_conda_is_taken_back_to_the_byte(tmp_path: Path) -> None:
    case = made(tmp_path)
    before = manifest(case.prefix)
    done = run(case, "conda", "--json", "install", "tqdm")
    assert done.code == 0, done.told()
    assert (done.document["environment"], done.document["plan"]["text"]) == ("installed", "conda install tqdm")
    assert "tqdm" in names(case)
    proposed = Referee(case.room).run("install", "--dry-run", "--json", "-p", str(case.prefix), "tqdm", code=None)
    assert '"actions"' not in proposed, "conda has nothing to do after it"
    assert run(case, "undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before


def test_a_removal_that_takes_others_along_is_not_begun(tmp_path: Path) -> None:
    case = made(tmp_path)
    before = manifest(case.prefix)
    done = run(case, "conda", "remove", "-p", str(case.prefix), "numpy")
    assert done.code == 1, done.told()
    assert "--force" in done.err
    assert manifest(case.prefix) == before


def test_a_file_of_two_packages_stays_where_condas_own_command_removes_one(tmp_path: Path) -> None:
    """conda removes all that the record of a package lists, whoever else lists it."""
    both: dict[str, Content] = {"share/both": "the same\n", "share/deep/both": "the same\n"}
    one = Package("one", "1.0", "0", files={**both, "share/one": "1\n"})
    two = Package("two", "1.0", "0", files={**both, "share/two": "2\n"})
    url = write_channel(tmp_path / "extra", [one, two])
    room = make_room(tmp_path / "room", [url, *channels().old])
    case = CondaCase(room, Referee(room).create("env", ["python=3.11", "one", "two"]), "", frozenset())
    done = run(case, "conda", "remove", "-p", str(case.prefix), "one")
    assert done.code == 0, done.told()
    assert {path: (case.prefix / path).read_text() for path in both} == both
    assert names(case) & {"one", "two"} == {"two"}
