from __future__ import annotations

import os
from pathlib import Path

import pytest

from envmedic.engine.fs import trash
from tests.engine.world import in_child

NOBODY = 65534


def locked_tree(root: Path) -> Path:
    """Directories that their owner may not change, and one that he may not even list."""
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_text("x")
    (root / "a" / "link").symlink_to("b")
    (root / "hidden").mkdir()
    (root / "hidden" / "file").write_text("x")
    (root / "hidden").chmod(0)
    (root / "a" / "b").chmod(0o555)
    (root / "a").chmod(0o500)
    root.chmod(0o555)
    return root


def test_read_only_directories_are_deleted_by_their_owner(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become an ordinary user")
    os.chown(tmp_path, NOBODY, NOBODY)

    def work() -> None:
        os.chdir(tmp_path)  # its parents are closed to the user that this process becomes
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        locked_tree(Path("tree"))
        gone = trash.discard(Path("tree"), Path("trash"))
        assert gone == Path("trash/0")
        assert not Path("tree").exists()
        assert trash.empty(Path("trash")) == 3

    assert in_child(work)
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_deleted_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").write_text("keep")
    (tmp_path / "link").symlink_to("target")
    trash.discard(tmp_path / "link", tmp_path / "trash")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "inner").symlink_to(tmp_path / "target")
    trash.discard(tmp_path / "tree", tmp_path / "trash")
    assert trash.empty(tmp_path / "trash") == 2
    assert (tmp_path / "target" / "file").read_text() == "keep"


def test_deleting_a_hard_link_leaves_its_twin_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "original").write_text("x")
    os.link(tmp_path / "original", tmp_path / "tree" / "twin")
    before = (tmp_path / "original").stat()
    trash.discard(tmp_path / "tree", tmp_path / "trash")
    trash.empty(tmp_path / "trash")
    after = (tmp_path / "original").stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_nlink) == (before.st_mode, before.st_mtime_ns, 1)


def test_progress_tells_the_files_removed_so_far(tmp_path: Path) -> None:
    for number in range(1200):
        path = tmp_path / "tree" / str(number % 3) / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    told: list[int] = []
    trash.discard(tmp_path / "tree", tmp_path / "trash")
    assert trash.empty(tmp_path / "trash", told.append) == 1200
    assert told == [1, 501, 1001, 1200]


def test_an_empty_trash_is_nothing(tmp_path: Path) -> None:
    assert trash.empty(tmp_path / "trash") == 0
