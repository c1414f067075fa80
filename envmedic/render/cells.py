"""Lines measured and cut by cells of a terminal: wide characters take two, combining ones none.

Only what is laid out for a screen of a given width needs this, and with it rich; documents of the command line do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len

from envmedic.render.text import ELLIPSIS, Line, TextPart, bare, part, visible

_LEAD: Final = re.compile(r"\s*(?:(?:[-+*>]|\d+\.?)\s+)*")
"""The indentation of continuation lines: that of the first line, with the mark of an item."""
_BREAK: Final = re.compile(r"\S+\s*|\s+")


def width(text: str) -> int:
    """Cells that `text` takes: wide characters take two, combining ones none."""
    # rich looks up every character; most text is ASCII, where each takes one cell
    return len(text) if text.isascii() else cell_len(text)


def end(text: str, cells: int) -> str:
    """`text` cut to `cells`, with an ellipsis at its end where something is left out."""
    if width(text) <= cells:
        return text
    return (_head(text, cells - 1) + ELLIPSIS) if cells > 0 else ""


def middle(text: str, cells: int) -> str:
    """`text` cut to `cells` with an ellipsis in its middle: of a path, both ends tell most."""
    if width(text) <= cells:
        return text
    if cells <= 0:
        return ""
    # two thirds for the end: the name of a file says more than its first directories
    tail = _tail(text, (cells - 1) - (cells - 1) // 3)
    return _head(text, cells - 1 - width(tail)) + ELLIPSIS + tail


def padded(text: str, cells: int) -> str:
    """`text` with spaces up to `cells`."""
    return text + " " * (cells - width(text))


def _clusters(text: str) -> list[tuple[str, int]]:
    """Characters as the eye sees them, each with its cells: a letter with its accents is one."""
    found: list[str] = []
    for char in text:
        # a combining character, which the cut must not separate from its letter
        if found and not cell_len(char):
            found[-1] += char
        else:
            found.append(char)
    return [(cluster, cell_len(cluster)) for cluster in found]


def _head(text: str, cells: int) -> str:
    return _fitting(_clusters(text), cells)[0]


def _tail(text: str, cells: int) -> str:
    taken = _fitting(_clusters(text)[::-1], cells)[1]
    return "".join(cluster for cluster, _ in _clusters(text)[-taken:]) if taken else ""


def _fitting(clusters: Sequence[tuple[str, int]], cells: int) -> tuple[str, int]:
    """The first clusters that fit, and their number."""
    used, taken = 0, 0
    for _, size in clusters:
        if used + size > cells:
            break
        used, taken = used + size, taken + 1
    return "".join(cluster for cluster, _ in clusters[:taken]), taken


def wrapped(text: Line, cells: int) -> list[Line]:
    """`text` in lines of at most `cells`, broken at spaces where possible; later ones are indented as the first."""
    whole = bare(text)
    if width(whole) <= cells:
        return [text]
    indent = width(_LEAD.match(whole)[0])  # type: ignore[index]  # it matches the empty text too
    if indent > cells // 2:  # so deep that words would have no room
        indent = 0
    cuts = _places(whole, indent, max(cells, 2))
    rows: list[Line] = []
    for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        row = _sliced(text, start, stop)
        if row:  # the spaces before a break have stayed at the end of the row
            row = (*row[:-1], TextPart(row[-1].text.rstrip(), row[-1].tone))
        rows.append((TextPart(" " * indent), *row) if start and indent else row)
    return rows


def _places(whole: str, indent: int, cells: int) -> list[int]:
    """Positions of line breaks: before a word that does not fit, or inside one that is longer than a line."""
    cuts: list[int] = []
    used = 0
    for word in _BREAK.finditer(whole):
        # spaces after a word may go over the edge: they are cut off below
        size = width(word[0].rstrip())
        # a row that holds only its indentation is not broken again: the word would never fit
        if used + size > cells and used > (indent if cuts else 0):
            cuts.append(word.start())
            used = indent
        start, rest = word.start(), word[0]
        while used + width(rest.rstrip()) > cells:
            head = _head(rest, cells - used) or rest[0]  # at least one character, so that it comes to an end
            start, rest = start + len(head), rest[len(head) :]
            cuts.append(start)
            used = indent
        used += width(rest)
    return cuts


def _sliced(text: Line, start: int, stop: int) -> Line:
    """The characters of `text` from `start` to `stop`, with their tones."""
    parts: list[TextPart] = []
    begin = 0
    for piece in text:
        low, high = max(start - begin, 0), min(stop - begin, len(piece.text))
        if low < high:
            parts.append(TextPart(piece.text[low:high], piece.tone))
        begin += len(piece.text)
    return tuple(parts)


def marked(text: Line, needle: str) -> Line:
    """`text` with every occurrence of `needle`, in any case, in the tone ``match``."""
    whole, wanted = bare(text).lower(), needle.lower()
    # some letters are longer in lower case: places in `whole` would then be wrong in `text`
    if not wanted or wanted not in whole or len(whole) != len(bare(text)):
        return text
    parts: list[TextPart] = []
    start = 0
    while (found := whole.find(wanted, start)) >= 0:
        parts += _sliced(text, start, found)
        parts += [TextPart(piece.text, "match") for piece in _sliced(text, found, found + len(wanted))]
        start = found + len(wanted)
    return (*parts, *_sliced(text, start, len(whole)))


def pairs(rows: Sequence[tuple[str, str]]) -> list[Line]:
    """Labels beside their values, in two columns."""
    labels = [visible(label) for label, _ in rows]
    cells = max(map(width, labels), default=0)
    values = (part(value) for _, value in rows)
    return [(TextPart(padded(label, cells) + "  ", "dim"), value) for label, value in zip(labels, values, strict=True)]
