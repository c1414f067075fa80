"""An explanation as a page of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from envmedic.model.answers.explanation import Explanation
from envmedic.render.style import Style, plain

WIDTH = 96
UNWRAPPED = 1_000_000
"""A width that no paragraph has: for readers that wrap by themselves."""


def explanation_lines(found: Explanation, style: Style, *, width: int = WIDTH) -> list[str]:
    """The page, part by part, at most `width` characters wide; empty parts are left out."""
    signs = [f"{sign.message}\n  {sign.meaning}" for sign in found.signs]
    books = [f"{book.id}: {book.title}" for book in found.playbooks]
    terms = [f"{term.term}: {term.meaning}" for term in found.terms]
    kind = "" if found.kind == "fault" or found.fault is None else f"  (playbook for {found.fault})"
    return [
        f"{style(found.topic, 'bold')}  {plain(found.title)}{kind}",
        *_part("What it is", _wrapped(found.what, width), style),
        *_part("Why it happens", _wrapped(found.why, width), style),
        *_part("How it shows", _items(signs, width), style),
        *_part("What confirms it", _kept(found.confirmed_by, width), style),
        *_part("What the repair does, in a copy of the environment", _items(found.repair, width, numbered=True), style),
        *_part("How it is proven", _items(found.proof, width), style),
        *_part("Other ways", _items(found.alternatives, width), style),
        *_part("Playbooks" if found.kind == "fault" else "Other playbooks for it", _items(books, width), style),
        *_part("Words", _items(terms, width), style),
        *_part("References", [f"  {plain(url)}" for url in found.references], style),
    ]


def _part(title: str, lines: list[str], style: Style) -> list[str]:
    return ["", style(title, "bold"), *lines] if lines else []


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(plain(text), width, initial_indent="  ", subsequent_indent="  ", break_long_words=False)


def _items(texts: Iterable[str], width: int, *, numbered: bool = False) -> list[str]:
    lines: list[str] = []
    for number, text in enumerate(texts, 1):
        head = f"  {number}. " if numbered else "  - "
        for index, part in enumerate(text.split("\n")):
            first = head if index == 0 else " " * len(head)
            lines += textwrap.wrap(
                plain(part),
                width,
                initial_indent=first,
                subsequent_indent=" " * len(head),
                break_long_words=False,
                break_on_hyphens=False,
            )
    return lines


def _kept(lines: Iterable[str], width: int) -> list[str]:
    """Lines whose indentation means something."""
    kept = []
    for line in lines:
        indent = "  " + " " * (len(line) - len(line.lstrip()))
        kept += textwrap.wrap(
            plain(line.strip()), width, initial_indent=indent, subsequent_indent=indent + "    ", break_long_words=False
        )
    return kept
