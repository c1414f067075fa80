"""Colours for lines of a log: errors, warnings, paths, numbers and quoted words. The text stays as it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from envmedic.render.text import Line, TextPart, Tone, visible

_LONGEST: Final = 2_000
"""Characters that are looked at: what follows in such a line is data."""
_PIECES: Final = re.compile(
    r"(?P<bad>\b(?:[A-Z]\w*(?:Error|Exception|Failure)|Traceback|ERROR|FATAL|FAILED|Segmentation fault|error:|fatal:)(?!\w))"
    r"|(?P<warn>\b(?:[A-Z]\w*Warning|WARNING|WARN|warning:)(?!\w))"
    r"|(?P<accent>(?:(?<=[\s\"'(=])|^)(?:~|\.{1,2})?/[\w.+@%~-]+(?:/[\w.+@%~-]*)*)"
    r"|(?P<number>(?<![\w.])(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)*(?:e[+-]?\d+)?)(?![\w.])%?)"
    r"|(?P<good>'[^']{1,80}'|\"[^\"/]{1,80}\")"
)


def toned(text: str) -> Line:
    """`text` with its pieces in their tones."""
    shown = visible(text)
    return tuple(_parts(shown)) if len(shown) <= _LONGEST else (TextPart(shown),)


def _parts(text: str) -> Iterator[TextPart]:
    end = 0
    for found in _PIECES.finditer(text):
        if found.start() > end:
            yield TextPart(text[end : found.start()])
        yield TextPart(found[0], _TONES[found.lastgroup or ""])
        end = found.end()
    if end < len(text):
        yield TextPart(text[end:])


_TONES: Final[dict[str, Tone]] = {"bad": "bad", "warn": "warn", "accent": "accent", "number": "number", "good": "good"}
