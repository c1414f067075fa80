"""Screens that are kept as text and styles, drawn as pictures for people."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_RUN = re.compile(r"([a-zA-Z])(\d+)")
_ROWS = re.compile(r"(\d+)(?:-(\d+))?: (.*)")


def pictures(document: str, size: tuple[int, int], title: str) -> dict[str, str]:
    """An SVG for each theme of `document`, which `snapshots.document` made of a screen of that size."""
    lines = document.split("\n")
    text, rest = lines[: size[1]], "\n".join(lines[size[1] :])
    sections = dict(part.split("\n", 1) for part in rest.split("--- ")[1:])
    return {theme: _svg(text, styles, size, f"{title}, {theme}") for theme, styles in sections.items()}


def _svg(text: list[str], styles: str, size: tuple[int, int], title: str) -> str:
    console = Console(
        record=True, width=size[0], height=size[1], file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    runs = _runs(styles)
    for number, row in enumerate(text):
        console.print(Segments([*_row(row, runs.get(number, [])), Segment.line()]), end="", soft_wrap=True)
    svg = console.export_svg(title=title, unique_id="envmedic")
    return _FONTS.sub("", svg)  # they would be fetched from elsewhere


def _runs(styles: str) -> dict[int, list[tuple[Style, int]]]:
    """Style and length of each run of cells, by row."""
    legend: dict[str, Style] = {}
    rows: dict[int, list[tuple[Style, int]]] = {}
    for line in filter(None, styles.split("\n")):
        told = _ROWS.fullmatch(line)
        if told is None:
            letter, _, style = line.partition(" = ")
            legend[letter] = Style.parse(style or "none")
            continue
        first, last, runs = told.groups()
        for number in range(int(first), int(last or first) + 1):
            rows[number] = [(legend[letter], int(length)) for letter, length in _RUN.findall(runs)]
    return rows


def _row(text: str, runs: list[tuple[Style, int]]) -> Iterator[Segment]:
    """The text cut where its style changes, filled with blanks."""
    at = 0
    for style, cells in runs:
        end = _end(text, at, cells)
        piece = text[at:end]
        yield Segment(piece + " " * (cells - cell_len(piece)), style)
        at = end


def _end(text: str, at: int, cells: int) -> int:
    """Where `cells` cells from `at` on end; what combines belongs to what is before it."""
    used = 0
    while at < len(text) and used + cell_len(text[at]) <= cells:
        used += cell_len(text[at])
        at += 1
    return at
