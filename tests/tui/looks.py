"""Every screen as a picture, in three sizes and the colours of three kinds of terminals, to be looked at.

``python -m tests.tui.looks`` (``make looks``) writes SVG files and an ``index.html`` of them to ``build/looks``, and
prints what no picture is needed for: lines of more than 100 characters.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from rich.color import Color, ColorSystem
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.strip import Strip

from envmedic.tui.themes import OWN, VARIABLE
from tests.tui import recording
from tests.tui.scenes import SCENES, Still

FOLDER = Path("build/looks")
SIZES = ((80, 24), (120, 40), (200, 60))
MEASURE = 100
"""Characters of a line that are read easily."""
TERMINALS: dict[str, tuple[dict[str, str], ColorSystem | None]] = {
    "16": ({"TERM": "xterm"}, ColorSystem.STANDARD),
    "256": ({"TERM": "xterm-256color"}, ColorSystem.EIGHT_BIT),
    "true": ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, None),
}
"""The variables by which an app knows a terminal, and the colours to which that reduces others, by its name."""
_XTERM = TerminalTheme(
    (0, 0, 0),
    (0xAA, 0xAA, 0xAA),
    [(0, 0, 0), (170, 0, 0), (0, 170, 0), (170, 85, 0), (0, 0, 170), (170, 0, 170), (0, 170, 170), (170, 170, 170)],
    [
        (85, 85, 85),
        (255, 85, 85),
        (85, 255, 85),
        (255, 255, 85),
        (85, 85, 255),
        (255, 85, 255),
        (85, 255, 255),
        (255, 255, 255),
    ],
)
"""The sixteen colours as consoles have them."""
_SPACES = re.compile(r" {3,}|[─│┃▏▎▕▌█╭╮╰╯]+")


def main(arguments: Sequence[str]) -> None:
    """Draw them."""
    parser = argparse.ArgumentParser(prog="python -m tests.tui.looks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SCENES, default=tuple(SCENES), help="these screens")
    parser.add_argument("--theme", choices=OWN, default=OWN[0], help="in this theme")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for scene, size, terminal in product(options.only, SIZES, TERMINALS):
        name = f"{scene}-{size[0]}x{size[1]}-{terminal}"
        rows = _rows(scene, size, terminal, options.theme)
        (FOLDER / f"{name}.svg").write_text(_svg(rows, size, terminal, name), encoding="utf-8")
        names.append(name)
        if terminal == "true":
            for text in _long(rows):
                sys.stdout.write(f"{name}: {len(text)} characters: {text}\n")
    pictures = "".join(
        f'<figure><img src="{name}.svg"><figcaption>{html.escape(name)}</figcaption></figure>' for name in names
    )
    (FOLDER / "index.html").write_text(f"<!doctype html><title>Looks</title>{pictures}\n", encoding="utf-8")
    sys.stdout.write(f"{len(names)} pictures in {FOLDER}\n")


def _rows(scene: str, size: tuple[int, int], terminal: str, theme: str) -> list[Strip]:
    variables, _ = TERMINALS[terminal]
    with (
        tempfile.TemporaryDirectory() as home,
        mock.patch.dict(os.environ, {"HOME": home, VARIABLE: theme, **variables}),
    ):
        for name in (
            "XDG_CONFIG_HOME",
            "XDG_CACHE_HOME",
            "NO_COLOR",
            "VISUAL",
            "EDITOR",
            *({"COLORTERM"} - set(variables)),
        ):
            os.environ.pop(name, None)
        return asyncio.run(_drawn(scene, size))


async def _drawn(scene: str, size: tuple[int, int]) -> list[Strip]:
    still = Still(recording.load())
    with mock.patch("envmedic.tui.screens.repair.time", SimpleNamespace(time=still.now)):
        async with still.run_test(size=size) as pilot:
            await SCENES[scene](still, pilot)
            await pilot.pause()
            return list(still.screen._compositor.render_strips())


def _svg(rows: Iterable[Strip], size: tuple[int, int], terminal: str, title: str) -> str:
    system = TERMINALS[terminal][1]
    console = Console(
        record=True, width=size[0], height=size[1], file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    for row in rows:
        cells = (Segment(one.text, _reduced(one.style, system)) for one in row)
        console.print(Segments([*cells, Segment.line()]), end="", soft_wrap=True)
    return re.sub(
        r"@font-face \{.*?\}\s*", "", console.export_svg(title=title, unique_id="looks", theme=_XTERM), flags=re.DOTALL
    )


def _reduced(style: Style | None, system: ColorSystem | None) -> Style | None:
    """The style in the colours that the terminal has."""
    if style is None or system is None:
        return style

    def nearest(colour: Color | None) -> Color | None:
        return None if colour is None else colour.downgrade(system)

    return style.without_color + Style(color=nearest(style.color), bgcolor=nearest(style.bgcolor))


def _long(rows: Iterable[Strip]) -> list[str]:
    """Passages without a gap or a frame in them that are longer than what is read easily."""
    lines = ("".join(segment.text for segment in row) for row in rows)
    return [
        part.strip()
        for text in lines
        for part in _SPACES.split(text)
        if len(part.strip()) > MEASURE and " " in part.strip()
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
