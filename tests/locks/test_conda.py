"""Locks of conda environments with pip packages on top, before conda-lock and conda."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from envmedic.locks.reading import read
from tests.cli.support import Done, Shell
from tests.conda.channel import channels
from tests.conda.client import conda_program
from tests.conda.referee import Referee
from tests.conda.room import Room, make_room
from tests.gallery.repair_gallery.conda.files import records
from tests.locks.world import build_wheels
from tests.support.index import serve, write_index
from tests.support.venvs import uv

pytestmark = pytest.mark.long

SPECS = ("python 3.11.*", "pip", "pytorch 2.3.*", "pytorch-cuda 12.1.*")
CONDA_LOCK = str(Path(sys.executable).with_name("conda-lock"))
PIP = {"alpha", "beta", "gamma"}


@dataclass(frozen=True)
class Mixed:
    """conda packages, and wheels on top of them."""

    room: Room
    user: Shell
    prefix: Path

    def lock(self, *arguments: str, prefix: Path | None = None) -> Done:
        """``envmedic lock``."""
        return self.user.envmedic("lock", "-p", str(prefix or self.prefix), *arguments)

    def run(self, argv: Sequence[str], cwd: Path) -> str:
        """Run a command as the user; it must succeed."""
        done = subprocess.run(argv, env=self.user.environment(), capture_output=True, text=True, check=False, cwd=cwd)
        assert done.returncode == 0, f"{' '.join(argv)}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    """An environment that py-rattler made, with three wheels from an index."""
    root = tmp_path_factory.mktemp("mixed")
    room = make_room(root / "room", channels().old)
    prefix = room.by_rattler("train", SPECS)
    write_index(root / "index", list(build_wheels(root / "wheels").values()))
    with serve(root / "index") as server:
        tools = {"PIP_INDEX_URL": server.url, "UV_DEFAULT_INDEX": server.url, "PIP_CONFIG_FILE": "/dev/null"}
        user = Shell(room.home, {**room.environment, **tools, "UV_LINK_MODE": "copy"})
        made = Mixed(room, user, prefix)
        made.run([uv(), "pip", "install", "-q", "--python", str(prefix / "bin/python"), *sorted(PIP)], root)
        yield made


@pytest.fixture
def lock_file(mixed: Mixed, tmp_path: Path) -> Path:
    """Its conda-lock.yml."""
    path = tmp_path / "conda-lock.yml"
    done = mixed.lock("-o", str(path))
    assert done.code == 0, done.told()
    return path


def test_conda_and_pip_packages_are_locked_each_once(mixed: Mixed, lock_file: Path) -> None:
    found = read(lock_file)
    by_conda = {(item["name"], item["version"], item["build"], item["md5"]) for item in records(mixed.prefix)}
    assert {(item.name, item.version, item.build, item.md5) for item in found.packages if item.build} == by_conda
    assert {item.name for item in found.packages if item.manager == "pip"} == PIP
    assert (found.cuda, found.python, found.platform) == ("12.1", "3.11.7", "linux-64")


def test_hashes_are_those_of_the_package_files(lock_file: Path) -> None:
    for item in read(lock_file).packages:
        if item.manager == "conda":
            content = Path((item.url or "").removeprefix("file://")).read_bytes()
            assert hashlib.sha256(content).hexdigest() == item.sha256
            assert hashlib.md5(content, usedforsecurity=False).hexdigest() == item.md5


def test_conda_lock_renders_it(mixed: Mixed, lock_file: Path) -> None:
    mixed.run([CONDA_LOCK, "render", "--kind", "explicit", str(lock_file)], lock_file.parent)
    lines = (lock_file.parent / "conda-linux-64.lock").read_text(encoding="utf-8").splitlines()
    urls = {line.partition("#")[0] for line in lines if line.startswith("file:")}
    assert urls == {item["url"] for item in records(mixed.prefix)}
    assert sum(line.startswith("# pip ") for line in lines) == len(PIP)


def test_what_conda_lock_installs_from_it_is_locked_the_same(mixed: Mixed, lock_file: Path, tmp_path: Path) -> None:
    """A pip that is first on PATH would be used where conda run fails: it must not be."""
    stub = tmp_path / "bin" / "pip"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\nexit 97\n", encoding="utf-8")
    stub.chmod(0o755)
    new, second = tmp_path / "new", tmp_path / "second.yml"
    path = f"{stub.parent}:{mixed.user.environment()['PATH']}"
    install = [CONDA_LOCK, "install", "--conda", str(conda_program()), "-p", str(new), str(lock_file)]
    Mixed(mixed.room, mixed.user.having(PATH=path), new).run(install, tmp_path)
    done = mixed.lock("-o", str(second), prefix=new)
    assert done.code == 0, done.told()
    first, again = (
        {(item.name, item.url, item.sha256, item.md5) for item in read(file).packages} for file in (lock_file, second)
    )
    assert first == again


def test_conda_makes_the_same_versions_from_an_environment_file(mixed: Mixed, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    assert mixed.lock("--format", "environment", "-o", str(path)).code == 0
    new = tmp_path / "new"
    mixed.run([str(conda_program()), "env", "create", "-p", str(new), "-f", str(path)], tmp_path)
    assert Referee(mixed.room).list_explicit(new) == Referee(mixed.room).list_explicit(mixed.prefix)
    frozen = mixed.run([uv(), "pip", "freeze", "--python", str(new / "bin/python")], tmp_path)
    assert {"alpha==1.0", "beta==2.0", "gamma==3.0"} <= set(frozen.split("\n"))


def test_what_was_asked_for_is_in_an_environment_file_without_the_rest(mixed: Mixed) -> None:
    done = mixed.lock("--from-history")
    assert done.code == 0, done.told()
    listed = YAML(typ="safe").load(done.out)["dependencies"]
    # py-rattler keeps what it was asked for in the records: the history has no spec
    channels = mixed.room.channels
    assert {text.rpartition("::")[2] for text in listed[:-1]} == set(SPECS)
    assert all(text.partition("::")[0] in channels for text in listed[:-1]), listed
    # beta is needed by alpha, and was asked for too
    assert listed[-1] == {"pip": ["alpha==1.0", "beta==2.0", "gamma==3.0"]}


def test_an_environment_of_which_nothing_says_what_was_asked_for_is_refused(mixed: Mixed, tmp_path: Path) -> None:
    bare = mixed.room.by_rattler(f"unasked-{tmp_path.name[-8:]}", ("python 3.11.*",))
    for record in (bare / "conda-meta").glob("*.json"):
        kept = {key: value for key, value in json.loads(record.read_text("utf-8")).items() if "requested" not in key}
        record.write_text(json.dumps(kept), encoding="utf-8")
    done = mixed.lock("--from-history", prefix=bare)
    assert (done.code, done.out) == (2, "")
    assert "Nothing says what was asked for" in done.err
    done = mixed.lock("--from-history", "--format", "conda-lock", prefix=bare)
    assert (done.code, done.out) == (2, "")


@pytest.mark.conda
def test_what_was_asked_for_is_what_conda_exports_and_makes_again(mixed: Mixed, tmp_path: Path) -> None:
    referee = Referee(mixed.room)
    prefix = referee.create("asked", ("python=3.11", "pip", "packaging"))
    referee.install(prefix, "filelock<3.16")
    referee.remove(prefix, "packaging")
    # pip, since uv marks what it brings along as asked for too
    mixed.run([str(prefix / "bin/pip"), "install", "-q", "alpha"], tmp_path)
    path = tmp_path / "environment.yml"
    assert mixed.lock("--from-history", "-o", str(path), prefix=prefix).code == 0
    exported = referee.run("env", "export", "--from-history", "--prefix", str(prefix))
    listed = YAML(typ="safe").load(path.read_text("utf-8"))["dependencies"]
    specs = [text.rpartition("::")[2] for text in listed if isinstance(text, str)]
    assert sorted(specs) == sorted(YAML(typ="safe").load(exported)["dependencies"])
    # beta came for alpha alone
    assert listed[-1] == {"pip": ["alpha==1.0"]}
    new = tmp_path / "new"
    mixed.run([str(conda_program()), "env", "create", "-p", str(new), "-f", str(path)], tmp_path)
    assert referee.list_explicit(new) == referee.list_explicit(prefix)
    assert "beta==2.0" in mixed.run([uv(), "pip", "freeze", "--python", str(new / "bin/python")], tmp_path)


def test_formats_of_wheels_name_the_conda_packages_that_they_lack(mixed: Mixed) -> None:
    done = mixed.lock("--format", "requirements", "--json")
    assert done.code == 1
    assert {item["name"] for item in done.document["incomplete"]} == {item["name"] for item in records(mixed.prefix)}


def test_a_record_that_cannot_be_read_is_told(mixed: Mixed, tmp_path: Path) -> None:
    broken = mixed.room.by_rattler(f"broken-{tmp_path.name[-8:]}", ("python 3.11.*",))
    next((broken / "conda-meta").glob("openssl-*.json")).write_text("{", encoding="utf-8")
    done = mixed.lock("--json", prefix=broken)
    assert done.code == 1
    assert any(item["name"].startswith("openssl") for item in done.document["incomplete"])


def test_a_record_without_md5_is_told(mixed: Mixed, tmp_path: Path) -> None:
    bare = mixed.room.by_rattler(f"bare-{tmp_path.name[-8:]}", ("python 3.11.*",))
    record = next((bare / "conda-meta").glob("openssl-*.json"))
    record.write_text(record.read_text(encoding="utf-8").replace('"md5"', '"no_md5"'), encoding="utf-8")
    done = mixed.lock("--json", prefix=bare)
    assert [item["name"] for item in done.document["incomplete"]] == ["openssl"]
    assert "MD5" in done.document["incomplete"][0]["reason"]
