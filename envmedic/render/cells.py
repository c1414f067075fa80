"""Lines measured and cut by cells of a terminal: wide characters take two, combining ones none.

Only what is laid out for a screen of a given width needs this, and with it rich; documents of the command line do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from envmedic.render import wrapping
from envmedic.render.text import ELLIPSIS, Line, TextPart, bare, part, visible
from envmedic.render.wrapping import clusters, fitting, head_of, sliced


def width(text: str) -> int:
    """Cells that `text` takes: wide characters take two, combining ones none."""
    # rich looks up every character; most text is ASCII, where each takes one cell
    return len(text) if text.isascii() else cell_len(text)


def end(text: str, cells: int) -> str:
    """`text` cut to `cells`, with an ellipsis at its end where something is left out."""
    if width(text) <= cells:
        return text
    return (head_of(text, cells - 1, width) + ELLIPSIS) if cells > 0 else ""


def middle(text: str, cells: int) -> str:
    """`text` cut to `cells` with an ellipsis in its middle: of a path, both ends tell most."""
    if width(text) <= cells:
        return text
    if cells <= 0:
        return ""
    # two thirds for the end: the name of a file says more than its first directories
    tail = _tail(text, (cells - 1) - (cells - 1) // 3)
    return head_of(text, cells - 1 - width(tail), width) + ELLIPSIS + tail


def padded(text: str, cells: int) -> str:
    """`text` with spaces up to `cells`."""
    return text + " " * (cells - width(text))


def _tail(text: str, cells: int) -> str:
    found = clusters(text, cell_len)
    taken = fitting(found[::-1], cells)[1]
    return "".join(cluster for cluster, _ in found[-taken:]) if taken else ""


def wrapped(text: Line, cells: int) -> list[Line]:
    """`text` in lines of at most `cells`, as rich draws them; see `render.wrapping`."""
    return wrapping.wrapped(text, cells, width)


def marked(text: Line, needle: str) -> Line:
    """`text` with every occurrence of `needle`, in any case, in the tone ``match``."""
    whole, wanted = bare(text).lower(), needle.lower()
    # some letters are longer in lower case: places in `whole` would then be wrong in `text`
    if not wanted or wanted not in whole or len(whole) != len(bare(text)):
        return text
    parts: list[TextPart] = []
    start = 0
    while (found := whole.find(wanted, start)) >= 0:
        parts += sliced(text, start, found)
        parts += [TextPart(piece.text, "match") for piece in sliced(text, found, found + len(wanted))]
        start = found + len(wanted)
    return (*parts, *sliced(text, start, len(whole)))


def pairs(rows: Sequence[tuple[str, str]]) -> list[Line]:
    """Labels beside their values, in two columns."""
    labels = [visible(label) for label, _ in rows]
    cells = max(map(width, labels), default=0)
    values = (part(value) for _, value in rows)
    return [(TextPart(padded(label, cells) + "  ", "dim"), value) for label, value in zip(labels, values, strict=True)]
