"""Foreign text on a terminal: shown as it is and never acted on, measured by cells.

A line is a tuple of parts, each a text with a tone. Widgets turn tones into styles of the theme; nothing here is
markup, so that no text is read as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from rich.cells import cell_len

from envmedic.render.style import Style

Tone = Literal["plain", "good", "bad", "warn", "dim", "bold", "accent", "match"]
ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"
_TAB: Final = 4
_CODES: Final[dict[str, Tone]] = {
    "32": "good",
    "31": "bad",
    "33": "warn",
    "2": "dim",
    "1": "bold",
    "36": "accent",
}
_OWN: Final = re.compile(r"\x1b\[(0|32|31|33|2|1|36)m")
_PICTURES: Final = 0x2400
"""Where Unicode has pictures of the C0 controls."""
_C0_END, _DELETE, _DELETE_PICTURE = 0x20, 0x7F, 0x2421
_LEAD: Final = re.compile(r"\s*(?:(?:[-+*>]|\d+\.?)\s+)*")
"""What the continuation of a line is indented by: its own indentation, with the mark of an item."""
_BREAK: Final = re.compile(r"\S+\s*|\s+")


class TextPart(NamedTuple):
    """A piece of a line."""

    text: str
    tone: Tone = "plain"


Line = tuple[TextPart, ...]
COLOURED: Final = Style(colour=True)
"""The style whose escapes `parsed` turns into tones: the renderers of the command line speak through it."""


def visible(text: str) -> str:
    """`text` of one line with nothing left that acts on a terminal: controls become their pictures or codes."""
    if text.isprintable():
        return text
    return "".join(_seen(text))


def _seen(text: str) -> Iterator[str]:
    column = 0
    for char in text:
        shown = _shown(char, column)
        column += len(shown)
        yield shown


def _shown(char: str, column: int) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if char == "\t":
        return " " * (_TAB - column % _TAB)
    if code < _C0_END:
        return chr(_PICTURES + code)
    if code == _DELETE:
        return chr(_DELETE_PICTURE)
    return " " if char.isspace() else f"<U+{code:04X}>"


def line(text: str, tone: Tone = "plain") -> Line:
    """One line of foreign text."""
    return (TextPart(visible(text), tone),)


def parsed(text: str) -> Line:
    """A line of a renderer that was given `COLOURED`; every other escape in it is made visible."""
    parts: list[TextPart] = []
    tone: Tone = "plain"
    for number, piece in enumerate(_OWN.split(text)):
        if number % 2:
            tone = _CODES.get(piece, "plain")
        elif piece:
            parts.append(TextPart(visible(piece), tone))
    return tuple(parts) or (TextPart(""),)


def rendered(lines: Iterable[str]) -> list[Line]:
    """Lines of a renderer, some of which may hold line ends."""
    return [parsed(piece) for text in lines for piece in text.split("\n")]


def bare(text: Sequence[TextPart]) -> str:
    """A line without its tones."""
    return "".join(part.text for part in text)


def width(text: str) -> int:
    """Cells that `text` takes: wide characters take two, combining ones none."""
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
    tail = _tail(text, (cells - 1) - (cells - 1) // 3)
    return _head(text, cells - 1 - width(tail)) + ELLIPSIS + tail


def padded(text: str, cells: int) -> str:
    """`text` with spaces up to `cells`."""
    return text + " " * (cells - width(text))


def _clusters(text: str) -> list[tuple[str, int]]:
    """What the eye takes for characters, each with its cells: a letter with its accents is one."""
    found: list[str] = []
    for char in text:
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
    """`text` in lines of at most `cells`, broken at spaces where there are any; later ones are indented as the first."""
    whole = bare(text)
    if width(whole) <= cells:
        return [text]
    indent = width(_LEAD.match(whole)[0])  # type: ignore[index]  # it matches the empty text too
    if indent > cells // 2:
        indent = 0
    return [
        _with_indent(piece, indent if number else 0) for number, piece in enumerate(_cut(text, whole, indent, cells))
    ]


def _with_indent(piece: Line, indent: int) -> Line:
    return (TextPart(" " * indent), *piece) if indent else piece


def _cut(text: Line, whole: str, indent: int, cells: int) -> list[Line]:
    cuts = _places(whole, indent, max(cells, 2))
    return [_stripped(_sliced(text, start, stop)) for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


def _places(whole: str, indent: int, cells: int) -> list[int]:
    """Where to break: before the word that does not fit, or inside one that is longer than a line."""
    cuts: list[int] = []
    used = 0
    for word in _BREAK.finditer(whole):
        size = width(word[0].rstrip())
        if used + size > cells and used > (indent if cuts else 0):
            cuts.append(word.start())
            used = indent
        start, rest = word.start(), word[0]
        while used + width(rest.rstrip()) > cells:
            head = _head(rest, cells - used) or rest[0]
            start, rest = start + len(head), rest[len(head) :]
            cuts.append(start)
            used = indent
        used += width(rest)
    return cuts


def _sliced(text: Line, start: int, stop: int) -> Line:
    parts: list[TextPart] = []
    begin = 0
    for part in text:
        low, high = max(start - begin, 0), min(stop - begin, len(part.text))
        if low < high:
            parts.append(TextPart(part.text[low:high], part.tone))
        begin += len(part.text)
    return tuple(parts)


def _stripped(piece: Line) -> Line:
    if not piece:
        return (TextPart(""),)
    *rest, last = piece
    return (*rest, TextPart(last.text.rstrip(), last.tone))


def marked(text: Line, needle: str) -> Line:
    """`text` with every occurrence of `needle`, in any case, in the tone ``match``."""
    whole, wanted = bare(text).lower(), needle.lower()
    if not wanted or wanted not in whole or len(whole) != len(bare(text)):
        return text
    parts: list[TextPart] = []
    start = 0
    while (found := whole.find(wanted, start)) >= 0:
        parts += _sliced(text, start, found)
        parts += [TextPart(piece.text, "match") for piece in _sliced(text, found, found + len(wanted))]
        start = found + len(wanted)
    return (*parts, *_sliced(text, start, len(whole)))
