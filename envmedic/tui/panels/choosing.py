"""Panel to choose one of several items, which also shows items that cannot be chosen, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import OptionList

from envmedic.tui.panels.base import Panel
from envmedic.tui.widgets.choices import ChoiceList, Draw

T = TypeVar("T")


class Picks(ChoiceList[T], Generic[T]):
    """The items; Enter is among the keys that are shown."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Choose")]


class ChoicePanel(Panel[T | None], Generic[T]):
    """Items over the screen; Enter takes the highlighted one, where it can be taken."""

    DEFAULT_CSS = "ChoicePanel > #frame ChoiceList { height: auto; max-height: 80vh; background: $panel; }"

    def __init__(
        self,
        title: str,
        items: Sequence[T],
        draw: Draw[T],
        key: Callable[[T], str],
        can: Callable[[T], bool],
    ) -> None:
        super().__init__(title)
        self._items = tuple(items)
        self._draw = draw
        self._key = key
        self._can = can

    def inside(self) -> Iterable[Widget]:
        """The list."""
        yield Picks(self._draw, self._key, empty="There is nothing else to choose here.", id="choices")

    def on_mount(self) -> None:
        """Fill it, and let keys go to it."""
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        choices = self._choices()
        choices.show(self._items)
        choices.focus()

    def _choices(self) -> ChoiceList[T]:
        found: ChoiceList[T] = self.query_one(ChoiceList)
        return found

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take it, or say why not."""
        event.stop()
        item = self._choices().item(event.option_id)
        if item is None:
            return
        if self._can(item):
            self.dismiss(item)
        else:
            self.notify("This one cannot be taken; the reason stands below it", severity="warning", markup=False)
