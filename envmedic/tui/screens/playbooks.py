"""Playbooks: browsed, read, and written."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.widgets import OptionList

from envmedic.errors import EnvmedicError, InputError
from envmedic.model.answers.explanation import Explanation
from envmedic.render.pages.playbooks import Book, book_item, book_page, counts, filtered, mistakes_page
from envmedic.render.text import line
from envmedic.tui.command_lines import copy_line, playbook_line
from envmedic.tui.effects.playbooks import PlaybookEffects, Stamps, edit, editor_command
from envmedic.tui.screens.listing import ListingScreen
from envmedic.tui.session import AppState
from envmedic.tui.terminal import lent
from envmedic.tui.widgets.choices import ChoiceList

WATCH_S = 0.5
"""Seconds between two looks for saved files."""


class BookList(ChoiceList[Book]):
    """The playbooks."""

    HELP = (
        "Every playbook: your own first, and files with mistakes before them. / leaves those that hold what you type, "
        "f those for the fault of the highlighted one. e opens your own in $EDITOR, and makes a copy of a shipped one "
        "for that, which then takes its place. Files are read again whenever they are saved."
    )


class PlaybooksScreen(ListingScreen[Book]):
    """The list beside the page on what is highlighted."""

    TITLE_TEXT = "Playbooks"
    LIST_TITLE = "Playbooks"
    PAGE_HELP = "The highlighted playbook in plain words."
    HELP = "What envmedic knows of faults and their repairs, and what you teach it."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "fault", "Only this fault"),
        Binding("e", "edit", "Edit"),
        Binding("enter", "read", "Read", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._books: tuple[Book, ...] = ()
        self._fault: str | None = None
        self._stamps: Stamps | None = None
        self._shown: Book | None = None
        """The one whose page is shown or read."""
        self._wanted: str | None = None
        """File to go to once it is there."""

    def listed(self) -> BookList:
        """The playbooks."""
        return BookList(book_item, _key, empty="… reading playbooks", id="listed")

    def on_mount(self) -> None:
        """Read them, then watch the user's files."""
        super().on_mount()
        self._effects = PlaybookEffects(self.envmedic.effects, self.session.settings.playbook_files)
        self._effects.survey(self._surveyed)
        self.set_interval(WATCH_S, self._watch)

    async def _watch(self) -> None:
        """Read again what was saved."""
        try:
            # in a thread: a home directory on a network file system may be slow
            now = await asyncio.to_thread(self._effects.stamps)
        except InputError:
            now = ()  # reading tells why
        if self._stamps is not None and now != self._stamps:
            # None while a survey runs: the next tick must not start a second one.
            self._stamps = None
            self._effects.survey(self._surveyed)

    def _surveyed(self, found: tuple[Book, ...], stamps: Stamps) -> None:
        if self._books != found:
            self._shown = None
        self._books, self._stamps = found, stamps
        if self.standing:
            self._draw()
            self._edges(self.session)

    def _draw(self) -> None:
        choices = self.choices
        choices.show(filtered(self._books, self._fault))
        if self._wanted is not None:
            choices.highlight(self._wanted)
            self._wanted = None
        self._look_at(self.highlighted)

    def look(self) -> None:
        """The page on what is highlighted, and its line."""
        self._look_at(self.highlighted)
        self._edges(self.session)

    def _look_at(self, book: Book | None) -> None:
        if book is None or book == self._shown:
            return
        self._shown = book
        if book.mistakes:
            self._effects.source(book.path, partial(self._show_mistakes, book))
        else:
            self._effects.page(book, partial(self._show_page, book))

    def _show_page(self, book: Book, page: Explanation | EnvmedicError) -> None:
        # pages arrive late: the user may have moved on
        if self.standing and book == self._shown:
            self.page.show(book_page(book, page), home=True)

    def _show_mistakes(self, book: Book, source: tuple[str, ...]) -> None:
        if self.standing and book == self._shown:
            self.page.show(mistakes_page(book, source), home=True)

    def refresh_from(self, session: AppState) -> None:
        """Playbooks are read by themselves."""

    def about(self, session: AppState) -> str:
        """The number of playbooks."""
        del session
        return counts(self._books, self._fault) if self._books else ""

    def line(self, session: AppState) -> str:
        """The command for the highlighted playbook."""
        del session
        book = self.highlighted
        return "envmedic playbooks list" if book is None else playbook_line(book)

    def action_fault(self) -> None:
        """Only those for the fault of the highlighted one; then all again."""
        book = self.highlighted
        self._fault = None if self._fault or book is None or not book.fault else book.fault
        self._draw()
        self._edges(self.session)

    @on(OptionList.OptionSelected, "#listed")
    def action_read(self) -> None:
        """Go to the page."""
        self.page.focus()

    def action_edit(self) -> None:
        """Open the user's own in the editor; of a shipped one, a copy."""
        book = self.highlighted
        if book is None:
            return
        if book.own:
            self._edit(book)
            return
        lines = [
            line(f"{book.id} is shipped with envmedic. A copy of your own takes its place, and can be changed."),
            line(""),
            line(f"$ {copy_line(book)}", "dim"),
        ]
        self.envmedic.ask("Copy it?", lines, partial(self._copy, book))

    def _copy(self, book: Book, yes: bool) -> None:
        if yes:
            self._effects.copy(book, self._copied)

    def _copied(self, path: Path) -> None:
        self._wanted = str(path)
        self._edit(Book(str(path)))

    def _edit(self, book: Book) -> None:
        try:
            command = editor_command(book)
            with lent(self.envmedic):
                edit(command)
        except SuspendNotSupported:
            hint = f"Edit {book.path} elsewhere: it is read again whenever it is saved"
            self.envmedic.show_error(InputError("This terminal cannot be lent to an editor", hint=hint))
        except InputError as error:
            self.envmedic.show_error(error)
        self._effects.survey(self._surveyed)


def _key(book: Book) -> str:
    return book.path
