from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from textual.pilot import Pilot

from envmedic.errors import InputError
from envmedic.render.pages.playbooks import Book, book_item, filtered, mistakes_page
from envmedic.render.text import Line, bare
from envmedic.tui.app import EnvmedicApp
from envmedic.tui.effects.playbooks import editor_command
from envmedic.tui.panels.base import ErrorPanel, QuestionPanel
from envmedic.tui.screens.playbooks import BookList, PlaybooksScreen
from envmedic.tui.widgets.bars import CommandLine
from envmedic.tui.widgets.lines import LineView
from tests.tui.support import LARGE, SMALL, drive, shown, until, until_shown

pytestmark = pytest.mark.usefixtures("active")

MINE = """\
id: my-way
fault: torchvision-ops
title: Torchvision from our own index
explain: Ours is built for our torch.
fix_kind: other
signatures:
  - id: ours
    pattern: our torch is not your torch
    sample: "ImportError: our torch is not your torch"
steps:
  - step: advise
    text: Ask the platform team.
"""


def text(lines: list[Line]) -> str:
    return "\n".join(map(bare, lines))


def own_folder() -> Path:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "envmedic" / "playbooks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class TestViews:
    BAD = Book("/home/me/bad.yaml", mistakes=("/home/me/bad.yaml:2:4: steps: is missing",))
    GOOD = Book("/shipped/nms.yaml", "nms", "torchvision-ops", "Built for another torch", "shipped")
    OTHER = Book("/shipped/glibc.yaml", "glibc", "glibc-too-old", "Too old", "shipped")

    def test_a_mistake_stands_under_its_line(self) -> None:
        told = text(mistakes_page(self.BAD, ("id: x", "日本 = 1", "last")))
        assert told.startswith("✗ 1 mistake\n/home/me/bad.yaml")
        assert told.endswith("steps: is missing\n  2  日本 = 1\n          ^")
        assert "steps: is missing" in text(mistakes_page(self.BAD, ()))

    def test_items_fit_in_their_cells(self) -> None:
        for book in (self.BAD, self.GOOD, Book("/x", "a" * 40, "f", "t" * 40, "user")):
            assert all(len(bare(line)) <= 24 for line in book_item(book, 24))

    def test_a_filter_keeps_files_with_mistakes(self) -> None:
        assert filtered((self.BAD, self.GOOD, self.OTHER), "torchvision-ops") == (self.BAD, self.GOOD)
        assert filtered((self.GOOD, self.OTHER), None) == (self.GOOD, self.OTHER)


class TestEditor:
    def test_it_opens_at_the_first_mistake(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        editor = tmp_path / "nano"
        editor.write_text("#!/bin/sh\n")
        editor.chmod(0o755)
        monkeypatch.setenv("VISUAL", f"'{editor}' -w")
        assert editor_command(TestViews.BAD) == (str(editor), "-w", "+2", "/home/me/bad.yaml")

    def test_that_there_is_none_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", "no-such-editor")
        with pytest.raises(InputError, match="There is no editor no-such-editor"):
            editor_command(TestViews.BAD)


async def at_playbooks(opened: EnvmedicApp, pilot: Pilot[int]) -> LineView:
    await pilot.press("b")
    await until(pilot, lambda: isinstance(opened.screen, PlaybooksScreen))
    page = opened.screen.query_one("#page", LineView)
    await until(pilot, lambda: bool(page.text), "a page")
    return page


def listed(opened: EnvmedicApp) -> int:
    return opened.screen.query_one(BookList).option_count


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
def test_playbooks_are_browsed_read_and_filtered(size: tuple[int, int]) -> None:
    (own_folder() / "mine.yaml").write_text(MINE)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        page = await at_playbooks(opened, pilot)
        await until(pilot, lambda: "Torchvision from our own index" in page.text, "the user's own, first")
        assert page.text.startswith("yours  ")
        assert "1 yours" in shown(opened)
        everything = listed(opened)
        await pilot.press("f")
        await until(pilot, lambda: 1 < listed(opened) < everything)
        assert "only torchvision-ops" in shown(opened)
        await pilot.press("f")
        await until(pilot, lambda: listed(opened) == everything)
        await pilot.press("slash", *"nms-cuda", "enter")
        await until(pilot, lambda: "nms-cuda" in page.text)
        await until(pilot, lambda: "How it is proven" in page.text, "the page in plain words")
        assert opened.screen.query_one(CommandLine).line == "envmedic explain nms-cuda"
        await pilot.press("enter")
        await until(pilot, lambda: opened.focused is page, "the focus on the page")

    drive(scenario, size)


def test_mistakes_are_told_as_a_file_is_saved() -> None:
    mine = own_folder() / "mine.yaml"
    mine.write_text(MINE)

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        page = await at_playbooks(opened, pilot)
        await until(pilot, lambda: "Torchvision from our own index" in page.text)
        mine.write_text(MINE.replace("fix_kind: other", "fix_kind: magic"))
        await until(pilot, lambda: "✗ 1 mistake" in page.text, "the mistake")
        assert "fix_kind: magic" in page.text
        assert opened.screen.query_one(CommandLine).line == f"envmedic playbooks validate {mine}"
        mine.write_text(MINE)
        await until(pilot, lambda: page.text.startswith("yours"), "the page again")
        mine.unlink()
        await until(pilot, lambda: "yours" not in shown(opened))

    drive(scenario)


def test_a_shipped_one_is_copied_to_be_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f"#!{sys.executable}\nimport sys\nopen(sys.argv[-1], 'a').write('nonsense: 1\\n')\n")
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VISUAL", str(editor))

    async def scenario(opened: EnvmedicApp, pilot: Pilot[int]) -> None:
        page = await at_playbooks(opened, pilot)
        await pilot.press("slash", *"nms-cuda", "enter")
        await until(pilot, lambda: "nms-cuda" in page.text)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(opened.screen, QuestionPanel))
        assert "takes its place" in shown(opened)
        await pilot.press("y")
        await until(pilot, (own_folder() / "nms-cuda.yaml").is_file)
        await until(pilot, lambda: isinstance(opened.screen, ErrorPanel), "that this terminal cannot be lent")
        await pilot.press("escape")
        await pilot.press("slash", "escape")
        await until_shown(pilot, "1 yours")

    drive(scenario)
