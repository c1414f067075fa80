"""Lists to choose from, whose items change while the place in them stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from envmedic.render.text import Line, TextPart, bare
from envmedic.tui.widgets.content import MEASURE, content_of

T = TypeVar("T")
Draw = Callable[[T, int], Sequence[Line]]
"""The lines of an item at that width, in cells."""


class ChoiceList(OptionList, Generic[T]):
    """Items of one kind, each of some lines; `/` filters them by the typed text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
    ]
    DEFAULT_CSS = """
    ChoiceList { background: $surface; border: none; padding: 0; scrollbar-size-vertical: 1;
        scrollbar-gutter: stable; max-height: 100%;
    }
    ChoiceList:focus { border: none; }
    ChoiceList > .option-list--option { padding: 0 1 0 0; }
    """

    def __init__(
        self,
        draw: Draw[T],
        key: Callable[[T], str],
        *,
        empty: str,
        id: str,
        keeps_place: bool = True,
    ) -> None:
        """`keeps_place` keeps the highlighted item when others come or go; else the first one is."""
        super().__init__(id=id, markup=False)
        self._keeps_place = keeps_place
        self._draw = draw
        self._key = key
        self.empty = empty
        """Text shown without items."""
        self._items: tuple[T, ...] = ()
        self._shown: dict[str, tuple[Line, ...]] = {}
        self._told = ""
        """Text now shown in place of items."""
        self._needle = ""

    def show(self, items: Sequence[T]) -> None:
        """Show `items`; what is highlighted stays so."""
        self._items = tuple(items)
        drawn = self._drawn()
        # the same items: replacing only those that changed keeps the scroll position
        if list(drawn) == list(self._shown) and drawn:
            for key, lines in drawn.items():
                if lines != self._shown[key]:
                    self.replace_option_prompt(key, content_of(lines))
        elif drawn != self._shown or self._told != self._nothing(drawn):
            self._replace(drawn)
        self._shown = drawn

    def _drawn(self) -> dict[str, tuple[Line, ...]]:
        width = min(max(self.scrollable_content_region.width - 1, 8), MEASURE)
        found: dict[str, tuple[Line, ...]] = {}
        for item in self._items:
            lines = tuple(self._draw(item, width))
            if self._needle in " ".join(map(bare, lines)).lower() or self._needle in self._key(item).lower():
                found[self._key(item)] = lines
        return found

    def _replace(self, drawn: dict[str, tuple[Line, ...]]) -> None:
        before = self.chosen
        self.clear_options()
        self._told = self._nothing(drawn)
        if not drawn:
            self.add_option(Option(content_of([(TextPart(self._told, "dim"),)]), disabled=True))
            return
        self.add_options([Option(content_of(lines), id=key) for key, lines in drawn.items()])
        kept = self._keeps_place and before in drawn
        self.highlighted = list(drawn).index(before) if kept and before is not None else 0

    def _nothing(self, drawn: dict[str, tuple[Line, ...]]) -> str:
        """Text to show where no item is drawn."""
        if drawn:
            return ""
        return self.empty if not self._needle else f"Nothing here holds {self._needle}"

    @property
    def chosen(self) -> str | None:
        """Key of the highlighted item."""
        option = self.highlighted_option
        return option.id if option is not None else None

    def highlight(self, key: str) -> None:
        """Go to the item of that key, if it is shown."""
        if key in self._shown:
            self.highlighted = list(self._shown).index(key)

    def item(self, key: str | None) -> T | None:
        """The item of that key."""
        return next((item for item in self._items if self._key(item) == key), None)

    def search(self, needle: str) -> int:
        """Leave only items that hold `needle`, and return their number."""
        self._needle = needle.lower()
        self.show(self._items)
        return len(self._shown)

    def on_resize(self, _event: events.Resize) -> None:
        """Draw for the new width."""
        self.show(self._items)
