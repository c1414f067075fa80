"""Lock, create from it, lock again: the same. And what the real tools make of the lock is the same environment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Done
from tests.conda.channel import Channels
from tests.conda.referee import Referee, builds
from tests.conda.room import Room, make_room
from tests.gallery.repair_gallery.conda.files import records
from tests.locks.world import World
from tests.support.round_trip import NAMES, checks, entries, sealed
from tests.support.venvs import install, python_of
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.long


@pytest.mark.parametrize("form", ["pylock", "requirements"])
def test_a_venv_comes_back_from_its_lock(room: World, form: str) -> None:
    file, new = room.room / NAMES[form], room.room / "again"
    before = room.lock("--format", form, "-o", str(file), "--json")
    assert before.code == 0, before.told()
    made = room.user.envmedic("create", "--lock", str(file), "-p", str(new), "--json")
    assert made.code == 0, made.told()
    assert (made.document["differences"], made.document["unproven"]) == ([], [])
    assert made.document["compared"] == 3
    again = room.lock("--format", form, "-o", str(room.room / f"again-{file.name}"), "--json", prefix=new)
    assert entries(again.document) == entries(before.document)
    assert sealed(file) == sealed(room.room / f"again-{file.name}") != []
    verified = [room.user.envmedic("verify", "--json", "-p", str(prefix)) for prefix in (room.prefix, new)]
    assert [done.code for done in verified] == [0, 0], verified[1].told()
    assert checks(verified[0].document) == checks(verified[1].document)


@pytest.mark.parametrize("form", ["pylock", "requirements"])
def test_uv_makes_the_same_of_it(room: World, form: str) -> None:
    file, ours = room.room / NAMES[form], room.room / "ours"
    room.lock("--format", form, "-o", str(file))
    assert room.user.envmedic("create", "--lock", str(file), "-p", str(ours)).code == 0
    theirs = room.empty("theirs")
    room.uv("pip", "sync", "-q", "--python", str(python_of(theirs)), str(file))
    assert room.installed(ours) == room.installed(theirs) == room.installed(room.prefix)
    done = room.user.envmedic("verify", "--json", "--lock", str(file), "-p", str(theirs))
    assert (done.code, done.document["differences"]) == (0, []), done.told()


def test_pip_makes_the_same_of_it(room: World) -> None:
    file, theirs = room.room / "requirements.txt", room.empty("theirs")
    room.lock("--format", "requirements", "-o", str(file))
    room.pip(theirs, "install", "-q", "--no-deps", "--require-hashes", "-r", str(file))
    done = room.user.envmedic("verify", "--json", "--lock", str(file), "-p", str(theirs))
    assert (done.code, done.document["differences"]) == (0, []), done.told()


class Mixed:
    """A conda environment with a wheel on top, whose user has a pip first on PATH that fails."""

    def __init__(self, room: Room, prefix: Path) -> None:
        self.room = room
        self.prefix = prefix
        self.stub = room.root / "stub"
        self.stub.mkdir()
        for name in ("pip", "pip3"):
            program = self.stub / name
            program.write_text(f"#!/bin/sh\necho ran >> {self.stub}/ran\nexit 1\n", encoding="utf-8")
            program.chmod(0o755)
        wheel = make_wheel(
            room.root / "wheels", "on-top", "1.0", entry_points="[console_scripts]\non-top = on_top:main\n"
        )
        install(prefix, [wheel])

    def envmedic(self, *arguments: str) -> Done:
        own = self.room.environment
        variables = {
            **own,
            "PATH": f"{self.stub}:{own['PATH']}",
            "CUDA_VISIBLE_DEVICES": "",
            "PIP_CONFIG_FILE": "/dev/null",
        }
        done = subprocess.run(
            [sys.executable, "-m", "envmedic", *arguments], env=variables, capture_output=True, text=True, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def lock(self, prefix: Path, file: Path) -> Done:
        links = str(self.room.root / "wheels")
        return self.envmedic("lock", "--json", "-p", str(prefix), "-o", str(file), "--find-links", links)


SPECS = ("python=3.11", "pytorch=2.3", "torchvision", "pip")


@pytest.fixture(params=["rattler", "conda"])
def mixed(request: pytest.FixtureRequest, local: Channels, tmp_path: Path) -> Mixed:
    """Made by either tool: their records differ."""
    room = make_room(tmp_path / "room", local.old)
    if request.param == "rattler":
        return Mixed(room, room.by_rattler("one", ["python 3.11.*", "pytorch 2.3.*", "torchvision", "pip"]))
    return Mixed(room, Referee(room).create("one", SPECS))


@pytest.mark.conda
def test_a_mixed_environment_comes_back_from_its_lock(mixed: Mixed) -> None:
    room, file = mixed.room, mixed.room.root / "conda-lock.yml"
    before = mixed.lock(mixed.prefix, file)
    made = mixed.envmedic(
        "create", "--json", "--lock", str(file), "-n", "two", "--no-gpu", "--find-links", str(room.root / "wheels")
    )
    assert made.code == 0, made.told()
    new = room.envs / "two"
    assert made.document["differences"] == []
    assert not (mixed.stub / "ran").exists()
    again = mixed.lock(new, room.root / "again.yml")
    assert (before.code, again.code) == (0, 0), again.told()
    assert entries(again.document) == entries(before.document)
    assert builds(new) == builds(mixed.prefix)
    assert _depends(new) == _depends(mixed.prefix)
    assert (new / "bin" / "on-top").read_text(encoding="utf-8").startswith(f"#!{new}/bin/python")
    assert str(mixed.prefix) not in (new / "bin" / "on-top").read_text(encoding="utf-8")
    referee = Referee(room)
    assert sorted(referee.list_explicit(new)) == sorted(referee.list_explicit(mixed.prefix))
    assert referee.dry_run_changes(new, "pytorch") == []


def _depends(prefix: Path) -> dict[str, tuple[set[str], set[str], object]]:
    """What later solves go by; conda adds pip to what Python needs."""
    return {
        record["name"]: (_specs(record, "depends") - {"pip"}, _specs(record, "constrains"), record.get("noarch"))
        for record in records(prefix)
    }


def _specs(record: dict[str, Any], key: str) -> set[str]:
    """py-rattler writes ``==1.0`` where the package itself has ``1.0``."""
    return {text.replace("==", "") for text in record.get(key) or ()}


@pytest.mark.conda
@pytest.mark.parametrize("mixed", ["rattler"], indirect=True)
def test_nothing_is_left_when_a_channel_is_gone(mixed: Mixed) -> None:
    file = mixed.room.root / "conda-lock.yml"
    assert mixed.lock(mixed.prefix, file).code == 0
    text = file.read_text(encoding="utf-8")
    channel = next(url for url in mixed.room.channels if url in text)
    lines = [line for line in text.replace(channel, channel + "-gone").splitlines() if "digest" not in line]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    new = mixed.room.envs / "two"
    done = mixed.envmedic(
        "create", "--json", "--lock", str(file), "-p", str(new), "--find-links", str(mixed.room.root / "wheels")
    )
    assert (done.code, json.loads(done.out)["code"]) == (1, "network"), done.told()
    assert sorted(path.name for path in mixed.room.envs.iterdir()) == ["one"]
