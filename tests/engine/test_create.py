"""The place of a new environment while it is made."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from envmedic.engine.transaction import create
from tests.engine.world import in_child

NOBODY = 65534


@pytest.fixture(params=[0o022, 0o027, 0o077])
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    former = os.umask(request.param)
    yield request.param
    os.umask(former)


def test_a_new_environment_has_the_mode_that_mkdir_would_give_it(tmp_path: Path, mask: int) -> None:
    with create.made(tmp_path / "new", staging="relocate") as site:
        (site.tree / "file").touch()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o755 & ~mask


def test_what_another_envmedic_makes_is_not_taken_for_left_over(tmp_path: Path) -> None:
    with create.made(tmp_path / "new", staging="relocate") as site:
        create._sweep(tmp_path / "new")
        assert site.tree.is_dir()
    left = tmp_path / f"{create._stem(tmp_path / 'new')}abc"
    left.mkdir()
    create._sweep(tmp_path / "new")
    assert not left.exists()


def test_a_link_that_looks_left_over_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").touch()
    (tmp_path / f"{create._stem(tmp_path / 'new')}abc").symlink_to(victim)
    with pytest.raises(OSError, match="Not a directory"):
        create._sweep(tmp_path / "new")
    assert (victim / "file").exists()


def test_read_only_directories_of_a_failed_environment_are_removed_by_their_owner(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become an ordinary user")
    os.chown(tmp_path, NOBODY, NOBODY)

    def work() -> None:
        os.chdir(tmp_path)  # its parents are closed to the user that this process becomes
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        Path("tree/inner").mkdir(parents=True)
        Path("tree/inner/file").touch()
        Path("tree/inner").chmod(0o500)
        create._remove(Path("tree"))
        assert not Path("tree").exists()

    assert in_child(work)
