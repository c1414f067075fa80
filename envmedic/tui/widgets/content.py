"""Lines as Textual's own content: for lists and labels, which wrap and colour by themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.content import Content

from envmedic.render.text import Line, Tone, visible

MEASURE: Final = 100
"""Cells that a line of text has at most: longer ones are hard to follow back to the next."""
_STYLES: Final[dict[Tone, str]] = {
    "plain": "",
    "good": "$tone-good",
    "bad": "bold $tone-bad",
    "warn": "$tone-warn",
    "dim": "$tone-dim",
    "bold": "bold",
    "accent": "bold $tone-accent",
    "match": "bold reverse",
    "command": "bold $tone-accent",
    "number": "$secondary",
}


def content_of(lines: Iterable[Line]) -> Content:
    """`lines` below each other. Nothing in them is read as markup."""
    drawn = (Content.assemble(*((visible(text), _STYLES[tone]) for text, tone in line)) for line in lines)
    return Content("\n").join(drawn)
