"""A list beside the page on what is highlighted in it."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar, cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import OptionList

from envmedic.tui.screens.base import BaseScreen, Searchable
from envmedic.tui.widgets.choices import ChoiceList
from envmedic.tui.widgets.lines import LineView
from envmedic.tui.widgets.parts import part

T = TypeVar("T")


class ListingScreen(BaseScreen, Generic[T]):
    """A list on the left, and the page on its highlighted item on the right."""

    LIST_TITLE: ClassVar[str]
    PAGE_HELP: ClassVar[str]
    """Help text of the page."""
    DEFAULT_CSS = """
    ListingScreen #listed { width: 40%; min-width: 30; max-width: 70; height: 1fr; }
    ListingScreen #page { width: 1fr; height: 1fr; }
    """

    def listed(self) -> ChoiceList[T]:
        """The list, whose id is ``listed``."""
        raise NotImplementedError

    def look(self) -> None:
        """Show the page on what is highlighted now."""
        raise NotImplementedError

    def body(self) -> ComposeResult:
        """The list beside the page."""
        with Horizontal():
            yield part(self.LIST_TITLE, self.listed())
            yield part("About it", LineView(id="page", about=self.PAGE_HELP))

    def on_mount(self) -> None:
        """Begin in the list."""
        super().on_mount()
        self.choices.focus()

    @property
    def choices(self) -> ChoiceList[T]:
        """The list."""
        return cast("ChoiceList[T]", self.query_one("#listed", ChoiceList))

    @property
    def page(self) -> LineView:
        """The page."""
        return self.query_one("#page", LineView)

    @property
    def highlighted(self) -> T | None:
        """The highlighted item."""
        choices = self.choices
        return choices.item(choices.chosen)

    @on(OptionList.OptionHighlighted, "#listed")
    def _moved_on(self) -> None:
        self.look()

    def searched(self) -> Searchable | None:
        """The list, unless the page has the focus."""
        return super().searched() or self.choices
