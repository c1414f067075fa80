"""Locks for several platforms: solved for, and read by the tools of each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from packaging.pylock import Pylock

from envmedic import toml
from envmedic.installers.resolution.other_platforms import tag_ranks
from envmedic.installers.wheels.wheel_files import rank
from envmedic.locks.reading import read
from tests.cli.support import Shell
from tests.conda.channel import channels, noarch
from tests.conda.room import make_room
from tests.gallery.repair_gallery.conda.package import Package, write_channel
from tests.locks.test_conda import CONDA_LOCK
from tests.locks.world import ABI, World
from tests.support.index import write_index
from tests.support.venvs import python_of
from tests.support.wheels import Wheel, make_wheel

ARM = f"{ABI}-{ABI}-manylinux_2_17_aarch64"


@pytest.fixture
def both(world: World) -> World:
    """Wheels for ARM beside those of x86: delta is needed there only, gamma here only."""
    marker = "; platform_machine == 'aarch64'"
    alpha = make_wheel(world.room / "more", "alpha", "1.1", requires=["beta>=2", f"delta{marker}"])
    more: list[Wheel] = [
        alpha,
        make_wheel(world.room / "more", "beta", "2.0", tags=(ARM,)),
        make_wheel(world.room / "more", "delta", "4.0", tags=(ARM,)),
    ]
    write_index(world.room / "index", [*world.wheels.values(), *more])
    python = str(python_of(world.prefix))
    world.uv("pip", "uninstall", "-q", "--python", python, "gamma")
    world.uv("pip", "install", "-q", "--python", python, "--refresh", "alpha==1.1")
    return world


def test_a_pylock_has_the_wheels_of_each_platform_with_markers(both: World) -> None:
    path = both.room / "pylock.toml"
    done = both.lock("--platform", "linux-aarch64", "-o", str(path))
    assert done.code == 0, done.told()
    document = Pylock.from_dict(toml.loads(path.read_text(encoding="utf-8")))
    packages = {str(item.name): item for item in document.packages}
    assert set(packages) == {"alpha", "beta", "delta"}
    assert len(packages["alpha"].wheels or ()) == 1
    assert sorted(item.filename for item in packages["beta"].wheels or ()) == sorted(
        f"beta-2.0-{tag}.whl" for tag in (ARM, ARM.replace("aarch64", "x86_64"))
    )
    assert packages["alpha"].marker is None
    assert packages["beta"].marker is None
    assert "aarch64" in str(packages["delta"].marker)
    assert len(document.environments or ()) == 2


def test_uv_installs_of_it_what_is_for_this_platform(both: World) -> None:
    path = both.room / "pylock.toml"
    assert both.lock("--platform", "linux-aarch64", "-o", str(path)).code == 0
    new = both.empty()
    both.uv("pip", "sync", "--python", str(python_of(new)), "--preview-features", "pylock", str(path))
    assert both.installed(new) == {"alpha==1.1", "beta==2.0"}
    assert {item.name for item in read(path).packages} == {"alpha", "beta"}


def test_a_version_that_another_platform_lacks_is_told(shared: World) -> None:
    done = shared.lock("--platform", "linux-aarch64", "--json")
    assert done.code == 1
    assert done.document["schema"] == "envmedic.error/1"
    assert done.document["code"] == "no-solution"
    assert "beta" in done.out or "gamma" in done.out


@pytest.mark.parametrize(
    "arguments", [("--platform", "amiga-68k"), ("--platform", "linux-aarch64", "--format", "requirements")]
)
def test_what_cannot_be_locked_for_several_platforms_is_told_at_once(shared: World, arguments: tuple[str, ...]) -> None:
    assert shared.lock(*arguments).code == 2


@pytest.mark.parametrize(
    ("platform", "better", "worse"),
    [
        ("linux-aarch64", "cp311-cp311-manylinux_2_17_aarch64", "cp311-abi3-manylinux2014_aarch64"),
        ("osx-arm64", "cp311-cp311-macosx_11_0_arm64", "py3-none-any"),
        ("win-64", "cp311-cp311-win_amd64", "py3-none-any"),
    ],
)
def test_the_best_wheel_of_a_platform_is_taken(platform: str, better: str, worse: str) -> None:
    ranks = tag_ranks("3.11", platform)
    assert rank(f"x-1-{better}.whl", ranks) < rank(f"x-1-{worse}.whl", ranks) < len(ranks)
    assert rank("x-1-cp311-cp311-manylinux_2_17_x86_64.whl", ranks) == len(ranks)


def arm(name: str, version: str, *depends: str) -> Package:
    return Package(name, version, "harm_0", subdir="linux-aarch64", depends=depends)


def test_a_conda_lock_is_solved_for_another_platform(tmp_path: Path) -> None:
    """ARM has this Python, and needs `libarm` with it; filelock is the same file on both."""
    write_channel(tmp_path / "arm", [
        arm("python", "3.11.7", "libarm >=1", "__glibc >=2.17"), arm("libarm", "1.2"), noarch("extra", "1.0"),
    ])  # fmt: skip
    room = make_room(tmp_path / "room", [(tmp_path / "arm").as_uri(), channels().url("main")])
    prefix = room.by_rattler("train", ("python 3.11.*", "filelock"))
    user, path = Shell(room.home, room.environment), tmp_path / "conda-lock.yml"
    done = user.envmedic("lock", "-p", str(prefix), "--platform", "linux-aarch64", "-o", str(path))
    assert done.code == 0, done.told()
    here, there = read(path, "linux-64"), read(path, "linux-aarch64")
    assert {"python", "libarm", "filelock"} <= {item.name for item in there.packages}
    assert "libarm" not in {item.name for item in here.packages}
    files = [{item.name: item.url for item in found.packages} for found in (here, there)]
    assert files[0]["filelock"] == files[1]["filelock"]
    assert "/linux-aarch64/python-" in str(files[1]["python"])
    for platform in ("linux-64", "linux-aarch64"):
        render = [CONDA_LOCK, "render", "--kind", "explicit", "-p", platform, str(path)]
        subprocess.run(render, cwd=tmp_path, env=user.environment(), check=True, capture_output=True)
    assert "libarm-1.2" in (tmp_path / "conda-linux-aarch64.lock").read_text(encoding="utf-8")
