"""Lines broken at a width, with hanging indents; a command line that is broken still runs as it is pasted. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

from envmedic.render.text import Line, TextPart, bare

Measure = Callable[[str], int]
"""The cells of a terminal that a text takes."""
GOES_ON: Final = " \\"
"""End of a row of a command line that goes on in the next one."""
NARROW: Final = 56
"""Cells of a row under which a deep indent leaves room for few words only."""
_LEAD: Final = re.compile(r"\s*(?:(?:[-+*>!?|✗✓·▸]|\d+\.)\s+)*")
"""The indentation of continuation lines: that of the first line, with the mark of an item."""
_COLUMN: Final = re.compile(r"(?<=\S) {2,}(?=\S)")
"""The gap before a column: the text of a column stays in it."""
_BREAK: Final = re.compile(r"\S+\s*|\s+")
_WORD: Final = re.compile(r"(?:'[^']*'|\"[^\"]*\"|\S)+\s*|\s+")
"""A word of a command line; a quoted one holds spaces."""


def drawn(text: str) -> int:
    """Cells that `text` takes, by the tables of Unicode; the terminal UI asks rich, which draws it."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def wrapped(text: Line, cells: int, measure: Measure = drawn) -> list[Line]:
    """`text` in lines of at most `cells`, broken at spaces where possible; later ones hang below its last column."""
    whole = bare(text)
    if measure(whole) <= cells:
        return [text]
    command = _start_of_command(text)
    indent = _hanging(whole if command is None else whole[: command + 1], cells, measure)
    if command is None:
        cuts = _places(whole, indent, max(cells, 2), measure)
    else:
        cuts = _between_words(whole, command, indent, cells, measure)
    rows: list[Line] = []
    for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        row = sliced(text, start, stop)
        if row:  # the spaces before a break have stayed at the end of the row
            end = GOES_ON if command is not None and command < stop < len(whole) else ""
            row = (*row[:-1], TextPart(row[-1].text.rstrip() + end, row[-1].tone))
        rows.append((TextPart(" " * indent), *row) if start and indent else row)
    return rows


def _start_of_command(text: Line) -> int | None:
    """Where the command line begins that ends the line; None where there is none."""
    if not text or text[-1].tone != "command":
        return None
    return sum(len(piece.text) for piece in text[:-1])


def _hanging(whole: str, cells: int, measure: Measure) -> int:
    """The indent of later rows: where the last column begins, as long as that leaves room for words beside it."""
    lead = _LEAD.match(whole)
    ends = [lead.end() if lead else 0, *(gap.end() for gap in _COLUMN.finditer(whole))]
    fitting = [size for size in (measure(whole[:end]) for end in ends) if size <= cells // (4 if cells < NARROW else 2)]
    return max(fitting, default=0)


def _places(whole: str, indent: int, cells: int, measure: Measure) -> list[int]:
    """Positions of line breaks: before a word that does not fit, or inside one that is longer than a line."""
    cuts: list[int] = []
    used = 0
    for word in _BREAK.finditer(whole):
        # spaces after a word may go over the edge: they are cut off below
        size = measure(word[0].rstrip())
        # at the indent of later rows the word is broken instead: in the next row it would have no more room
        if used + size > cells and used > indent and whole[: word.start()].strip():
            cuts.append(word.start())
            used = indent
        start, rest = word.start(), word[0]
        while used + measure(rest.rstrip()) > cells:
            head = head_of(rest, cells - used, measure) or rest[0]  # at least one character, so that it comes to an end
            start, rest = start + len(head), rest[len(head) :]
            cuts.append(start)
            used = indent
        used += measure(rest)
    return cuts


def _between_words(whole: str, command: int, indent: int, cells: int, measure: Measure) -> list[int]:
    """Positions of line breaks in a command line: between its words alone, since a broken one would be another."""
    cuts: list[int] = []
    used = measure(whole[:command])
    first = True
    for word in _WORD.finditer(whole, command):
        size = measure(word[0].rstrip())
        rest = len(GOES_ON) if word.end() < len(whole) else 0
        if not first and used + size + rest > cells:
            cuts.append(word.start())
            used = indent
        used += measure(word[0])
        first = False
    return cuts


def clusters(text: str, measure: Measure) -> list[tuple[str, int]]:
    """Characters as the eye sees them, each with its cells: a letter with its accents is one."""
    found: list[str] = []
    for char in text:
        # a combining character, which the cut must not separate from its letter
        if found and not measure(char):
            found[-1] += char
        else:
            found.append(char)
    return [(cluster, measure(cluster)) for cluster in found]


def fitting(parts: Sequence[tuple[str, int]], cells: int) -> tuple[str, int]:
    """The first clusters that fit, and their number."""
    used, taken = 0, 0
    for _, size in parts:
        if used + size > cells:
            break
        used, taken = used + size, taken + 1
    return "".join(cluster for cluster, _ in parts[:taken]), taken


def head_of(text: str, cells: int, measure: Measure) -> str:
    """The beginning of `text` that fits."""
    return fitting(clusters(text, measure), cells)[0]


def sliced(text: Line, start: int, stop: int) -> Line:
    """The characters of `text` from `start` to `stop`, with their tones."""
    parts: list[TextPart] = []
    begin = 0
    for piece in text:
        low, high = max(start - begin, 0), min(stop - begin, len(piece.text))
        if low < high:
            parts.append(TextPart(piece.text[low:high], piece.tone))
        begin += len(piece.text)
    return tuple(parts)
