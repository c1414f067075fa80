"""Everyday damage of conda environments, found without a text: moved ones, a broken pip, records that are gone."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conda import damage
from tests.conda.case import CondaCase, changes_of
from tests.conda.channel import Channels
from tests.conda.referee import Referee
from tests.conda.room import Room, make_room, record_of
from tests.real.manifest import manifest
from tests.support.native_case import Done, run
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.long

SPECS = ("python=3.11", "pip", "filelock=3.16.1", "packaging")


@pytest.fixture
def room(local: Channels, tmp_path: Path) -> Room:
    return make_room(tmp_path / "room", [local.url("main")])


@pytest.fixture(params=[pytest.param("conda", marks=pytest.mark.conda), "rattler"])
def case(request: pytest.FixtureRequest, room: Room) -> CondaCase:
    """A sound environment made by conda or by py-rattler."""
    referee = Referee(room)
    by_conda = request.param == "conda"
    prefix = referee.create("env", SPECS) if by_conda else room.by_rattler("env", SPECS)
    return CondaCase(room, prefix, "", referee.doctor(prefix) if by_conda else frozenset())


def judge(case: CondaCase, *, by_conda: bool) -> None:
    if by_conda:
        # conda's list of environments is in the home directory, and conda writes the new place into it when it next installs
        unlisted = "Environment listed in environments.txt file: ❌"
        before = {*case.complaints, *([unlisted] if case.prefix.name == "renamed" else [])}
        case.referee.judge(case.prefix, before=before, names=["python", "pip", "filelock"])


def pip(case: CondaCase) -> Done:
    return run([str(case.prefix / "bin/pip"), "--version"], case.variables(), case.room.root)


def naming(prefix: Path, text: str) -> list[str]:
    """Files of the environment with `text` in them, but for the history."""
    done = subprocess.run(["grep", "-rl", "--", text, str(prefix)], capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if not line.endswith(("/conda-meta/history", ".pyc"))]


def test_a_renamed_environment_names_its_present_place(
    request: pytest.FixtureRequest, case: CondaCase, tmp_path: Path
) -> None:
    tool = make_wheel(
        tmp_path / "wheels", "tool", "1.0",
        files={"tool/__init__.py": "def main():\n    print('tool runs')\n"},
        entry_points="[console_scripts]\ntool = tool:main\n",
    )  # fmt: skip
    damage.pip_over_conda(case.room, case.prefix, [tool])
    former, present = case.prefix, case.prefix.with_name("renamed")
    former.rename(present)
    case = dataclasses.replace(case, prefix=present)
    with pytest.raises(FileNotFoundError):
        pip(case)
    found = case.envmedic("diagnose", "-p", str(present), "--json")
    assert [item["playbook"] for item in found.document["findings"]] == ["moved-environment"]
    before = manifest(present)
    done = case.apply()
    assert done.code == 0, done.told()
    assert {(name, was == now) for name, was, now in changes_of(done)} >= {("python", True), ("pip", True)}
    assert pip(case).code == 0
    assert run([str(present / "bin/tool")], {}, case.room.root).out == "tool runs\n"
    assert naming(present, f"{former}/") == []
    assert case.envmedic("diagnose", "-p", str(present), "--deep", "--json").document["verdict"] == "healthy"
    judge(case, by_conda="conda" in request.node.callspec.id)
    case.undo(before)


@pytest.mark.parametrize("how", ["uninstalled by itself", "half gone", "beside another release"])
def test_a_broken_pip_becomes_that_of_its_package(request: pytest.FixtureRequest, case: CondaCase, how: str) -> None:
    site = damage.site_packages(case.prefix)
    if how == "uninstalled by itself":
        command = [str(case.prefix / "bin/python"), "-m", "pip", "uninstall", "--quiet", "--yes", "pip"]
        subprocess.run(command, env=case.variables(), check=True, capture_output=True)
    elif how == "half gone":
        shutil.rmtree(site / "pip/_internal")
    else:
        damage.duplicate_metadata(case.prefix, "pip", "21.0")
        shutil.rmtree(site / "pip/_internal/cli")
    before = manifest(case.prefix)
    done = case.apply()
    assert done.code == 0, done.told()
    assert pip(case).out.startswith("pip 23.2.1 ")
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--deep", "--json").document["verdict"] == "healthy"
    judge(case, by_conda="conda" in request.node.callspec.id.split("-"))
    case.undo(before)


@pytest.mark.parametrize("name", ["filelock", "openssl"], ids=["nothing depends on it", "others depend on it"])
def test_a_package_whose_record_is_gone_gets_it_back(
    request: pytest.FixtureRequest, case: CondaCase, name: str
) -> None:
    record = record_of(case.prefix, name)
    version = record.name.split("-")[1]
    record.unlink()
    before = manifest(case.prefix)
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json")
    assert found.document["findings"][0]["playbook"] == "half-installed", found.told()
    done = case.apply()
    assert done.code == 0, done.told()
    assert record_of(case.prefix, name).name.split("-")[1] == version
    assert case.envmedic("diagnose", "-p", str(case.prefix), "--deep", "--json").document["verdict"] == "healthy"
    judge(case, by_conda="conda" in request.node.callspec.id.split("-"))
    case.undo(before)
