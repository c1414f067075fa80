"""The question of a repair that goes on meanwhile: it can be put off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from envmedic.tui.screens.panels import Panel
from envmedic.tui.text import Line
from envmedic.tui.widgets.lines import LineView


class AskPanel(Panel[bool | None]):
    """Yes, no, or a look at the screen below first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", priority=True),
        Binding("n", "answer(False)", "No", priority=True),
        Binding("escape", "close", "Look first"),
    ]

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        super().__init__(title)
        self._lines = tuple(lines)

    def inside(self) -> Iterable[LineView]:
        """What is asked."""
        yield LineView(self._lines, id="question")

    def action_answer(self, yes: bool) -> None:  # noqa: FBT001  # an action's argument
        """Answer."""
        self.dismiss(yes)
