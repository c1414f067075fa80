"""Lines as Textual's own content: for lists and labels, which wrap and colour by themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.content import Content

from envmedic.tui.text import Line, Tone

_STYLES: Final[dict[Tone, str]] = {
    "plain": "",
    "good": "$text-success",
    "bad": "bold $text-error",
    "warn": "$text-warning",
    "dim": "$text-muted",
    "bold": "bold",
    "accent": "bold $text-accent",
    "match": "bold reverse",
}


def content_of(lines: Iterable[Line]) -> Content:
    """`lines` below each other. Nothing in them is read as markup."""
    drawn = (Content.assemble(*((part.text, _STYLES[part.tone]) for part in line)) for line in lines)
    return Content("\n").join(drawn)
