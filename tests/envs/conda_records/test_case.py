"""A damaged record is named, nothing is touched, and what is told works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Shell
from tests.conda.referee import Referee
from tests.conda.room import Room
from tests.envs.conda_records.case import build
from tests.real.manifest import manifest

pytestmark = pytest.mark.long

_RECORD = "conda-meta/filelock-3.16.1-pyhd8ed1ab_0.json"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Room, Path]:
    """The room and the environment."""
    return build(tmp_path_factory.mktemp("conda-records"))


def test_conda_refuses_what_envmedic_names(broken: tuple[Room, Path]) -> None:
    room, prefix = broken
    said = Referee(room).run("install", "--prefix", str(prefix), "tqdm", code=1)
    before = manifest(prefix)
    user = Shell(room.home, room.environment)
    found = user.envmedic("diagnose", "-p", str(prefix), "--json")
    assert found.code == 1, found.told() + said
    assert [(item["playbook"], item["confirmed"]) for item in found.document["findings"]] == [("conda-records", True)]
    done = user.envmedic("apply", "-p", str(prefix), "--yes")
    assert done.code == 1, done.told()
    assert f"Move these records out of conda-meta: {_RECORD}" in " ".join((done.out + done.err).split())
    assert manifest(prefix) == before


def test_the_way_out_works(broken: tuple[Room, Path]) -> None:
    room, prefix = broken
    (prefix / _RECORD).unlink(missing_ok=True)
    Referee(room).install(prefix, "filelock=3.16.1=pyhd8ed1ab_0")
    found = Shell(room.home, room.environment).envmedic("diagnose", "-p", str(prefix), "--deep", "--json")
    assert (found.code, found.document["verdict"]) == (0, "healthy"), found.told()
