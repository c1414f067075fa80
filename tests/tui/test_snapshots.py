"""Every screen looks as it is kept. ``python -m tests.tui.snapshots`` renews what is meant to look otherwise."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.tui.snapshots import FOLDER, SIZES, THEMES, Size, differences, path_of
from tests.tui.support import SMALL
from tests.tui.svg import pictures

SVG = "{http://www.w3.org/2000/svg}"
WAITING = ("… making", "… reading the history", "… reading playbooks", "… looking", "… trying")
MACHINE = ("/work", "/tmp", "/root", "pyenv")


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "200x60"])
def test_every_screen_is_as_it_is_kept(size: Size, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    found = differences(size, tmp_path / "home", pictures)
    told = [f"look at {pictures}; renew with python -m tests.tui.snapshots what is meant", *found[:200]]
    assert not found, "\n".join(told)


def test_a_picture_has_every_row_of_the_screen() -> None:
    kept = path_of("watch", SMALL).read_text(encoding="utf-8")
    assert "日本語" in kept
    drawn = pictures(kept, SMALL, "watch")
    assert list(drawn) == list(THEMES)
    for svg in drawn.values():
        rows: dict[float, str] = {}
        for node in ET.fromstring(svg).iter(f"{SVG}text"):
            if "-line-" in node.get("clip-path", ""):
                row = float(node.get("y", "0"))
                rows[row] = rows.get(row, "") + (node.text or "")
        assert ["".join(text.split()) for _, text in sorted(rows.items())] == [
            "".join(text.split()) for text in kept.split("\n")[: SMALL[1]]
        ]


def test_snapshots_are_of_nobodys_machine() -> None:
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not [word for word in MACHINE if word in text], path


def test_snapshots_show_what_is_there_and_not_that_it_is_waited_for() -> None:
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not [word for word in WAITING if word in text], path
