"""Every screen looks as it is kept. ``python -m tests.tui.snapshots`` renews what is meant to look otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.snapshots import FOLDER, SIZES, Size, differences

MACHINE = ("/work", "/tmp", "/root", "pyenv")


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "200x60"])
def test_every_screen_is_as_it_is_kept(size: Size, tmp_path: Path) -> None:
    found = differences(size, tmp_path)
    assert not found, "\n".join(["renew with python -m tests.tui.snapshots what is meant", *found[:200]])


def test_snapshots_are_of_nobodys_machine() -> None:
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not [word for word in MACHINE if word in text], path
