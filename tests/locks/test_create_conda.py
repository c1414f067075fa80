"""What `envmedic create` tells conda, and what it tells of a host that a lock is not for."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from envmedic.installers.conda.configuration.registration import register
from envmedic.installers.conda.solve import virtual_packages
from envmedic.model.conda import CondaArtifact
from envmedic.model.facts import Host
from tests.cli.support import Done, Shell
from tests.conda.channel import Channels
from tests.conda.referee import Referee
from tests.conda.room import Room, make_room

pytestmark = pytest.mark.long


def test_an_environment_is_added_to_the_list_once(tmp_path: Path) -> None:
    file = tmp_path / ".conda" / "environments.txt"
    file.parent.mkdir()
    file.write_text("/envs/one", encoding="utf-8")
    for _ in range(2):
        assert register(Path("/envs/two/../two"), tmp_path, has_conda=False)
    assert file.read_text(encoding="utf-8") == "/envs/one\n/envs/two\n"


def test_the_list_is_made_for_who_has_conda_alone(tmp_path: Path) -> None:
    assert not register(Path("/envs/one"), tmp_path, has_conda=False)
    assert list(tmp_path.iterdir()) == []
    assert register(Path("/envs/one"), tmp_path, has_conda=True)
    assert (tmp_path / ".conda" / "environments.txt").read_text(encoding="utf-8") == "/envs/one\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_root_writes_nothing_in_the_home_of_another_user() -> None:
    with TemporaryDirectory() as name:  # nobody else can pass pytest's own directories
        home = Path(name)
        os.chown(home, 12345, 12345)
        assert not register(Path("/envs/one"), home, has_conda=True)
        assert list(home.iterdir()) == []


def package(name: str, **metadata: object) -> CondaArtifact:
    """A package that says so of itself."""
    return CondaArtifact(
        name=name, version="1", build="0", channel="c", subdir="noarch", filename=f"{name}-1-0.conda",
        url=f"file:///c/noarch/{name}-1-0.conda", metadata=dict(metadata),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("driver", "needed", "constrained"),
    [
        ("12.4", (), ()),
        ("11.8", ("torch needs __cuda >=12.1, and this host has 11.8",), ("limits needs __cuda >=12, and this host has 11.8",)),
        (None, ("torch needs __cuda >=12.1, and this host has none",), ()),
    ],
)  # fmt: skip
def test_what_a_host_does_not_offer_is_named(
    driver: str | None, needed: tuple[str, ...], constrained: tuple[str, ...]
) -> None:
    host = Host(driver_cuda=driver, glibc="2.36", source="a test")
    torch = package("torch", depends=("__cuda >=12.1", "__glibc >=2.17,<3.0.a0", "python >=3.11"))
    limits = package("limits", constrains=("__cuda >=12",), depends=())
    assert virtual_packages.unmet_requirements([torch], host, {}) == needed
    assert virtual_packages.unmet_requirements([limits], host, {}) == constrained


@pytest.fixture(scope="module")
def room(local: Channels, tmp_path_factory: pytest.TempPathFactory) -> Room:
    """A room on a machine whose driver knows CUDA 12.6."""
    return make_room(tmp_path_factory.mktemp("create") / "room", [local.forge], cuda="12.6")


def envmedic(room: Room, *arguments: str, **more: str) -> Done:
    """Run envmedic there."""
    return Shell(room.home, {**room.environment, "CUDA_VISIBLE_DEVICES": "", **more}).envmedic(*arguments)


def test_conda_lists_what_was_made_and_a_host_that_it_is_not_for_is_told(room: Room) -> None:
    file, prefix = room.root / "conda-lock.yml", room.by_rattler("one", ["python 3.11.*", "cuda-version 12.6.*"])
    done = envmedic(room, "lock", "-p", str(prefix), "-o", str(file))
    assert done.code == 0, done.told()
    arguments = ("create", "--lock", str(file), "--no-gpu", "-n")
    fitting = envmedic(room, *arguments, "two")
    assert (fitting.code, "__cuda" in fitting.err) == (0, False), fitting.told()
    assert not (room.home / ".conda" / "environments.txt").exists(), "this user has no conda"
    listed = Referee(room)
    listed.run("create", "--name", "of-conda")
    other = envmedic(room, *arguments, "three", CONDA_OVERRIDE_CUDA="11.8")
    assert other.code == 0, other.told()
    assert "cuda-version needs __cuda >=12, and this host has 11.8" in " ".join(other.err.split())
    lines = (room.home / ".conda" / "environments.txt").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == str(room.envs / "three")
    assert str(room.envs / "three") in listed.run("env", "list")
