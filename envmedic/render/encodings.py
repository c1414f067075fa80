"""Text for terminals and files whose encoding lacks some of envmedic's signs: others that mean the same take their place."""

from __future__ import annotations

import codecs
import unicodedata
from typing import Final, TextIO

WORDS: Final = "envmedic-words"
CELLS: Final = "envmedic-cells"
_SIGNS: Final = {
    "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{CHECK MARK}": "+",
    "\N{BALLOT X}": "x",
    "\N{MIDDLE DOT}": "-",
    "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}": ">",
    "\N{BLACK SQUARE}": "#",
    "\N{VERTICAL ELLIPSIS}": ":",
    "\N{NOT EQUAL TO}": "!=",
    "\N{RIGHTWARDS ARROW}": "->",
    "\N{LEFTWARDS ARROW}": "<-",
    "\N{MULTIPLICATION SIGN}": "x",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{EM DASH}": "-",
    "\N{EN DASH}": "-",
}
_CELLS: Final = {"\N{HORIZONTAL ELLIPSIS}": "~", "\N{RIGHTWARDS ARROW}": ">", "\N{LEFTWARDS ARROW}": "<"}
"""Where a sign must not be wider than what it stands for."""
_BOXES, _BLOCKS, _BRAILLE = range(0x2500, 0x2580), range(0x2580, 0x25A0), range(0x2800, 0x2900)
_HORIZONTAL: Final = frozenset("─━┄┅┈┉╌╍═╴╶╸╺")
_VERTICAL: Final = frozenset("│┃┆┇┊┋╎╏║╵╷╹╻")


def tolerate(stream: TextIO, signs: str) -> None:
    """Let `stream` replace what its encoding lacks by `signs`: `WORDS`, or `CELLS` for what is laid out in cells."""
    codecs.register_error(WORDS, lambda error: _replaced(error, cells=False))
    codecs.register_error(CELLS, lambda error: _replaced(error, cells=True))
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:  # else no stream of Python's own, such as a test's or a notebook's
        reconfigure(errors=signs)


def _replaced(error: UnicodeError, *, cells: bool) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign = _in_cells if cells else _in_words
    return "".join(map(sign, error.object[error.start : error.end])), error.end


def _in_words(char: str) -> str:
    known = _SIGNS.get(char) or _drawn(char)
    return known or char.encode("ascii", "backslashreplace").decode("ascii")


def _in_cells(char: str) -> str:
    known = _CELLS.get(char) or _SIGNS.get(char) or _drawn(char)
    return known if known and len(known) == 1 else "?" * _cells(char)


def _cells(char: str) -> int:
    return 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _drawn(char: str) -> str:
    """A piece of a frame, of a bar or of a spinner."""
    if char in _HORIZONTAL:
        return "-"
    if char in _VERTICAL:
        return "|"
    if ord(char) in _BRAILLE:
        return "*"  # a spinner
    return "+" if ord(char) in _BOXES else "#" if ord(char) in _BLOCKS else ""
