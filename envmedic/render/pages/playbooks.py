"""Playbooks as a list and as pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from envmedic.errors import EnvmedicError, InvalidPlaybook
from envmedic.model.answers.explanation import Explanation
from envmedic.model.playbook import LoadedPlaybook
from envmedic.render.cells import end, padded, width
from envmedic.render.documents.explanation import UNWRAPPED, explanation_lines
from envmedic.render.text import Line, TextPart, line, part, visible
from envmedic.wording import counted

_ORIGINS: Final = {"user": "yours", "file": "a file of yours", "shipped": "shipped"}
_MISTAKE: Final = re.compile(r"(?P<file>.*?):(?P<line>\d+):(?P<column>\d+): (?P<text>.*)", re.DOTALL)


class Book(msgspec.Struct, frozen=True):
    """A playbook in the list, or a file that should be one."""

    path: str
    id: str = ""
    """Empty where the file has mistakes."""
    fault: str = ""
    title: str = ""
    origin: str = "user"
    mistakes: tuple[str, ...] = ()
    """Each with ``file:line:column:`` before it."""

    @property
    def own(self) -> bool:
        """Whether the user may edit it."""
        return self.origin != "shipped"


class MistakeLine(msgspec.Struct, frozen=True):
    """A mistake of a file; line and column count from 1."""

    line: int
    column: int
    text: str


def books(playbooks: Iterable[LoadedPlaybook], invalid: Iterable[InvalidPlaybook]) -> tuple[Book, ...]:
    """Files with mistakes first, then the user's own playbooks, then shipped ones, each group by id."""
    good = [
        Book(item.path, item.playbook.id, item.playbook.fault or "no fault", item.playbook.title, item.origin)
        for item in playbooks
    ]
    bad = [Book(_file(error), mistakes=error.details) for error in invalid]
    return tuple(sorted([*bad, *good], key=lambda item: (not item.mistakes, not item.own, item.id, item.path)))


def _file(error: InvalidPlaybook) -> str:
    found = _MISTAKE.match(error.details[0]) if error.details else None
    return found["file"] if found else error.summary.rpartition(": ")[0]


def mistakes_of(book: Book) -> tuple[MistakeLine, ...]:
    """Its mistakes, in the order of the file."""
    found = [_MISTAKE.match(item) for item in book.mistakes]
    return tuple(MistakeLine(int(item["line"]), int(item["column"]), item["text"]) for item in found if item)


def book_item(book: Book, cells: int) -> list[Line]:
    """Two lines: its id and origin, and its title; of a file with mistakes, their number."""
    if book.mistakes:
        name, count = book.path.rpartition("/")[2], len(book.mistakes)
        return [
            (TextPart("✗ ", "bad"), TextPart(end(visible(name), max(cells - 2, 4)), "bad")),
            line(end(f"  {count} mistake{'' if count == 1 else 's'}", cells), "bad"),
        ]
    whose = f"  {_ORIGINS[book.origin]}" if book.own else ""
    name = end(visible(book.id), max(cells - width(whose), 4))
    return [
        (TextPart(name, "bold" if book.own else "plain"), TextPart(whose, "good")),
        line(end(f"  {visible(book.title)}", cells), "dim"),
    ]


def filtered(items: Sequence[Book], fault: str | None) -> tuple[Book, ...]:
    """Playbooks for one class of fault, and files with mistakes; all playbooks where `fault` is None."""
    return tuple(item for item in items if fault is None or item.mistakes or item.fault == fault)


def counts(items: Sequence[Book], fault: str | None) -> str:
    """The number of playbooks, for the title."""
    own, bad = sum(item.own for item in items), sum(bool(item.mistakes) for item in items)
    told = [
        counted(len(items), "playbook"),
        *([f"{own} yours"] if own else []),
        *([f"{bad} with mistakes"] if bad else []),
    ]
    return ", ".join(told) + (f"; only {fault}" if fault else "")


def book_page(book: Book, page: Explanation | EnvmedicError | None) -> list[Line]:
    """A playbook in plain words, with its path."""
    head = [
        (TextPart(f"{_ORIGINS[book.origin]}  ", "good" if book.own else "dim"), part(book.path, "dim")),
        line(""),
    ]
    if isinstance(page, EnvmedicError):
        return [*head, line(f"! {page.summary}", "bad")]
    if page is None:
        return [*head, line("… reading it", "dim")]
    return [*head, *explanation_lines(page, width=UNWRAPPED)]


def mistakes_page(book: Book, source: Sequence[str]) -> list[Line]:
    """Every mistake with its line of the file."""
    count = len(book.mistakes)
    lines = [
        line(f"✗ {count} mistake{'' if count == 1 else 's'}", "bad"),
        line(book.path, "dim"),
        line("It is read again whenever it is saved; e opens it in your editor.", "dim"),
    ]
    found = mistakes_of(book)
    cells = max((len(str(item.line)) for item in found), default=1)
    for item in found:
        lines += [line(""), line(item.text, "bold"), *_quoted(item, source, cells)]
    return lines + [line(f"  {text}") for text in book.mistakes[len(found) :]]


def _quoted(item: MistakeLine, source: Sequence[str], cells: int) -> list[Line]:
    if not 0 < item.line <= len(source):
        return []
    text = source[item.line - 1]
    # cells, not characters: the caret must be right after tabs and wide characters too
    before = width(visible(text[: item.column - 1]))
    return [
        (TextPart(f"  {padded(str(item.line), cells)}  ", "accent"), part(text)),
        (TextPart(" " * (cells + 4 + before)), TextPart("^", "accent")),
    ]
