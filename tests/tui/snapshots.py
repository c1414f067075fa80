"""What every screen looks like, kept as text: two sizes, two themes.

``python -m tests.tui.snapshots`` renews them; with ``--record`` a repair is carried out and recorded before. ``--svg
DIRECTORY`` draws what is kept as pictures there instead. Text and styles are kept rather than pictures: a change of
either can be read in a diff, and pictures are made of them where somebody wants to look.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import groupby, product
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from rich.segment import Segment
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input

from envmedic.tui.themes import DARK, LIGHT
from tests.tui import recording
from tests.tui.scenes import SCENES, Still
from tests.tui.support import LARGE, SMALL
from tests.tui.svg import pictures

FOLDER = Path(__file__).resolve().parent / "snapshots"
SIZES, THEMES = (SMALL, LARGE), (DARK, LIGHT)
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
Size = tuple[int, int]


def path_of(scene: str, size: Size) -> Path:
    """The file of a screen in a size."""
    return FOLDER / f"{scene}-{size[0]}x{size[1]}.txt"


Drawing = dict[str, tuple[str, str]]
"""Text and styles by theme."""


def drawn(size: Size, home: Path) -> dict[str, Drawing]:
    """Every scene, as the app draws it."""
    variables = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "XDG_CACHE_HOME": str(home / "cache")}
    variables |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}  # themes are made for the colours of the terminal
    with mock.patch.dict(os.environ, variables):
        for name in ("NO_COLOR", "ENVMEDIC_THEME", "VISUAL", "EDITOR"):
            os.environ.pop(name, None)
        recorded = recording.load()
        return {scene: asyncio.run(_drawn(scene, size, recorded)) for scene in SCENES}


async def _drawn(scene: str, size: Size, recorded: recording.Recorded) -> Drawing:
    still = Still(recorded)
    clock = SimpleNamespace(time=still.now)
    with mock.patch("envmedic.tui.screens.repair.time", clock):
        async with still.run_test(size=size) as pilot:
            await SCENES[scene](still, pilot)
            return {theme: await _seen(still, pilot, theme) for theme in THEMES}


async def _seen(still: Still, pilot: Pilot[int], theme: str) -> tuple[str, str]:
    still.use_theme(theme)
    await _settled(still, pilot)
    rows = still.screen._compositor.render_strips()
    return _text(rows), _styles(rows)


async def _settled(still: Still, pilot: Pilot[int]) -> None:
    """No cursor blinks, and nothing is drawn any more."""
    for field in still.screen.query(Input):
        field.cursor_blink = False
    await pilot.pause()
    await pilot.pause()


def _text(rows: Iterable[Strip]) -> str:
    return "".join("".join(segment.text for segment in row).rstrip() + "\n" for row in rows)


def _styles(rows: Iterable[Strip]) -> str:
    """How every cell is drawn: a legend, and for rows a letter with the number of cells; equal rows together."""
    names: dict[str, str] = {}
    lines = [" ".join(_runs(row, names)) for row in rows]
    legend = [f"{letter} = {style}" for style, letter in names.items()]
    told: list[str] = []
    at = 0
    for line, same in groupby(lines):
        count = len(list(same))
        told.append(f"{at}-{at + count - 1}: {line}" if count > 1 else f"{at}: {line}")
        at += count
    return "\n".join([*legend, *told]) + "\n"


def _runs(row: Sequence[Segment] | Strip, names: dict[str, str]) -> Iterable[str]:
    cells = ((str(segment.style or ""), segment.cell_length) for segment in row if segment.text)
    for style, run in groupby(cells, key=lambda cell: cell[0]):
        letter = names.setdefault(style, _LETTERS[len(names)])
        yield f"{letter}{sum(length for _, length in run)}"


def document(drawings: Drawing) -> str:
    """The text of a screen, then its styles in each theme."""
    (text, _), *others = drawings.values()
    assert all(again == text for again, _ in others), "a theme changes the text"
    return text + "".join(f"--- {theme}\n{styles}" for theme, (_, styles) in drawings.items())


def differences(size: Size, home: Path, folder: Path) -> list[str]:
    """Where the screens are not as they are kept; pictures of both are drawn in `folder`."""
    lines: list[str] = []
    for scene, drawing in drawn(size, home).items():
        path = path_of(scene, size)
        kept = path.read_text(encoding="utf-8") if path.is_file() else ""
        now = document(drawing)
        if kept != now:
            _draw(kept, size, folder, f"{path.stem}-kept")
            _draw(now, size, folder, f"{path.stem}-now")
        lines += difflib.unified_diff(kept.splitlines(), now.splitlines(), path.name, "now", lineterm="", n=1)
    return lines


def _draw(text: str, size: Size, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for theme, svg in pictures(text, size, name).items():
        (folder / f"{name}-{theme}.svg").write_text(svg, encoding="utf-8")


def draw(folder: Path) -> None:
    """Every screen and panel as a picture, in each size and theme."""
    for size, scene in product(SIZES, SCENES):
        path = path_of(scene, size)
        _draw(path.read_text(encoding="utf-8"), size, folder, path.stem)


def renew() -> None:
    """Keep the screens as they are now."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        for size in SIZES:
            for scene, drawing in drawn(size, Path(home)).items():
                path_of(scene, size).write_text(document(drawing), encoding="utf-8")
    for path in set(FOLDER.iterdir()) - {path_of(scene, size) for size in SIZES for scene in SCENES}:
        path.unlink()


def main(arguments: Sequence[str]) -> None:
    """Renew what is kept, or draw it."""
    parser = argparse.ArgumentParser(prog="python -m tests.tui.snapshots", description=__doc__)
    parser.add_argument("--record", action="store_true", help="carry a repair out and record it first")
    parser.add_argument("--svg", type=Path, metavar="DIRECTORY", help="draw what is kept there, and renew nothing")
    options = parser.parse_args(arguments)
    if options.svg is not None:
        draw(options.svg)
        return
    if options.record:
        recording.record()
    renew()


if __name__ == "__main__":
    main(sys.argv[1:])
