"""Styled lines: what every document and page is rendered to, for both front ends.

A line is a tuple of parts, each a text with a tone. The command line turns tones into escapes (`style.Style`), the
terminal UI into styles of its theme. Foreign text is made visible where a part is made, so nothing in a line acts on a
terminal, and nothing in it is read as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

Tone = Literal["plain", "good", "bad", "warn", "dim", "bold", "accent", "match", "command", "number"]
ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"
_TAB: Final = 4
_PICTURES: Final = 0x2400
"""First code point of Unicode's pictures of the C0 controls."""
_C0_END, _DELETE, _DELETE_PICTURE = 0x20, 0x7F, 0x2421


class TextPart(NamedTuple):
    """A piece of a line. Its text is visible already; `part` makes it so."""

    text: str
    tone: Tone = "plain"


Line = tuple[TextPart, ...]
"""Pieces of text with tones. A ``command`` ends its line: it is a command line that runs as it is pasted."""
Cell = str | TextPart
"""A piece of a line or of a table: foreign text, or a part."""


def visible(text: str) -> str:
    """`text` of one line without characters that act on a terminal: controls become their pictures or codes."""
    # most text is printable: one call instead of a loop over its characters
    if text.isprintable():
        return text
    return "".join(_visible_characters(text))


def _visible_characters(text: str) -> Iterator[str]:
    column = 0
    for char in text:
        shown = _visible_character(char, column)
        column += len(shown)
        yield shown


def _visible_character(char: str, column: int) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if char == "\t":
        return " " * (_TAB - column % _TAB)
    if code < _C0_END:
        return chr(_PICTURES + code)
    if code == _DELETE:
        return chr(_DELETE_PICTURE)
    # other separators, such as U+2028, would break the line; characters without a shape show their code
    return " " if char.isspace() else f"<U+{code:04X}>"


def shortened(text: str, length: int = 160) -> str:
    """`text` made visible, at most `length` characters long; JSON has all of it."""
    shown = visible(text)
    return shown if len(shown) <= length else shown[: length - 1] + ELLIPSIS


def part(text: str, tone: Tone = "plain") -> TextPart:
    """A part of foreign text."""
    return TextPart(visible(text), tone)


def line(text: str, tone: Tone = "plain") -> Line:
    """A line of foreign text in one tone."""
    return (TextPart(visible(text), tone),)


def joined(*pieces: Cell) -> Line:
    """A line of several pieces."""
    return tuple(part(piece) if isinstance(piece, str) else piece for piece in pieces)


def with_commands(text: str, tone: Tone = "plain") -> Line:
    """A line of foreign text in which what stands in backticks, such as a command, has a colour."""
    pieces = visible(text).split("`")
    if len(pieces) % 2 == 0:  # a backtick without its partner
        return (TextPart("`".join(pieces), tone),)
    named = (
        TextPart(f"`{piece}`", "accent") if number % 2 else TextPart(piece, tone) for number, piece in enumerate(pieces)
    )
    return tuple(piece for piece in named if piece.text)


def bare(text: Sequence[TextPart]) -> str:
    """The text of a line without its tones."""
    return "".join(piece.text for piece in text)


def section(title: str, lines: Iterable[Line], tone: Tone = "bold") -> list[Line]:
    """A blank line, `title` and `lines`; nothing where there are no lines."""
    shown = list(lines)
    return [line(""), line(title, tone), *shown] if shown else []


def table(rows: Sequence[Sequence[Cell]], *, indent: str = "  ") -> list[Line]:
    """Left-aligned columns; the last column is not padded."""
    cells = [joined(*row) for row in rows]
    # characters, not cells: only rich knows how wide a character is drawn, and the command line does without it
    widths = [max(map(len, (cell.text for cell in column))) for column in zip(*cells, strict=True)]
    lines: list[Line] = []
    for row in cells:
        last = max((number for number, cell in enumerate(row) if cell.text.strip()), default=-1)
        pieces = [TextPart(indent)] if indent and last >= 0 else []
        for number, (cell, size) in enumerate(zip(row[: last + 1], widths, strict=False)):
            if number == last:
                # no blanks at the end: they would be copied along, and wrap a line that just fits
                pieces.append(TextPart(cell.text.rstrip(), cell.tone))
            else:  # the padding has no tone, so that a tone never shows on blanks
                pieces += [cell, TextPart(" " * (size - len(cell.text)) + "  ")]
        lines.append(tuple(pieces))
    return lines
