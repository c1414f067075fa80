"""An explanation as a page of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from envmedic.model.answers.explanation import Explanation
from envmedic.render.text import Line, joined, line, part, section, visible

WIDTH = 96
UNWRAPPED = 1_000_000
"""A width that no paragraph has: for readers that wrap by themselves."""


def explanation_lines(found: Explanation, *, width: int = WIDTH) -> list[Line]:
    """The page, part by part, at most `width` characters wide; empty parts are left out."""
    signs = [f"{sign.message}\n  {sign.meaning}" for sign in found.signs]
    books = [f"{book.id}: {book.title}" for book in found.playbooks]
    terms = [f"{term.term}: {term.meaning}" for term in found.terms]
    kind = "" if found.kind == "fault" or found.fault is None else f"  (playbook for {found.fault})"
    return [
        joined(part(found.topic, "bold"), f"  {found.title}{kind}"),
        *section("What it is", _paragraph(found.what, width)),
        *section("Why it happens", _paragraph(found.why, width)),
        *section("How it shows", _items(signs, width)),
        *section("What confirms it", _indented(found.confirmed_by, width)),
        *section("What the repair does, in a copy of the environment", _items(found.repair, width, numbered=True)),
        *section("How it is proven", _items(found.proof, width)),
        *section("Other ways", _items(found.alternatives, width)),
        *section("Playbooks" if found.kind == "fault" else "Other playbooks for it", _items(books, width)),
        *section("Words", _items(terms, width)),
        *section("References", [line(f"  {url}") for url in found.references]),
    ]


def _paragraph(text: str, width: int, first: str = "  ", later: str = "  ", *, hyphens: bool = True) -> list[Line]:
    wrapped = textwrap.wrap(
        visible(text),
        width,
        initial_indent=first,
        subsequent_indent=later,
        # a URL or a path that is cut in two cannot be copied
        break_long_words=False,
        break_on_hyphens=hyphens,
    )
    return list(map(line, wrapped))


def _items(texts: Iterable[str], width: int, *, numbered: bool = False) -> list[Line]:
    lines: list[Line] = []
    for number, text in enumerate(texts, 1):
        head = f"  {number}. " if numbered else "  - "
        indent = " " * len(head)
        for index, piece in enumerate(text.split("\n")):
            # names of packages and options have hyphens: a break there would cut them
            lines += _paragraph(piece, width, head if index == 0 else indent, indent, hyphens=False)
    return lines


def _indented(texts: Iterable[str], width: int) -> list[Line]:
    """Lines that keep their indentation, which shows how conditions nest."""
    lines: list[Line] = []
    for text in texts:
        indent = "  " + " " * (len(text) - len(text.lstrip()))
        lines += _paragraph(text.strip(), width, indent, indent + "    ")
    return lines
