"""Panels over a screen: errors, help, a question, a line to type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input, Static

from envmedic.errors import EnvmedicError
from envmedic.render.pages.error import error_page
from envmedic.render.text import Line, bare
from envmedic.tui.widgets.bars import KeyBar
from envmedic.tui.widgets.content import content_of
from envmedic.tui.widgets.lines import LineView

R = TypeVar("R")


class Panel(ModalScreen[R], Generic[R]):
    """A framed text over the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]
    DEFAULT_CSS = """
    Panel { align: center middle; background: $background 60%; }
    Panel > #frame {
        width: 100%; max-width: 110; height: auto; max-height: 90%; background: $panel; border: round $primary; padding: 0 1;
    }
    Panel > #frame LineView { height: auto; max-height: 80vh; background: $panel; }
    Panel > #frame #question { height: auto; max-height: 60vh; }
    Panel > #frame Input { background: $surface; border: none; height: 1; margin: 1 0; padding: 0 1; }
    """

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        """The frame, and its keys below."""
        frame = Vertical(*self.inside(), id="frame")
        frame.border_title = self._title
        yield frame
        yield KeyBar()

    def inside(self) -> Iterable[Widget]:
        """Contents of the frame."""
        raise NotImplementedError

    def action_close(self) -> None:
        """Close it without an answer."""
        self.dismiss(None)


class TextPanel(Panel[None]):
    """Something to read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,q", "close", "Close", show=False),
        Binding("c", "copy", "Copy"),
    ]

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        super().__init__(title)
        self._lines = tuple(lines)

    def inside(self) -> Iterable[LineView]:
        """The text."""
        yield LineView(self._lines, id="text")

    def action_copy(self) -> None:
        """Copy all of it, to paste it into a report."""
        self.app.copy_to_clipboard("\n".join(map(bare, self._lines)))
        self.notify("The text was copied", markup=False)


class ErrorPanel(TextPanel):
    """An error: what happened, its cause, one next step, and what became of the environment."""

    DEFAULT_CSS = "ErrorPanel > #frame { border: round $error; }"

    def __init__(self, error: EnvmedicError) -> None:
        super().__init__("Error", error_page(error))


class QuestionPanel(Panel[bool | None]):
    """Yes or no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", priority=True),
        Binding("n", "answer(False)", "No", priority=True),  # in a text, n is the next match
    ]

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        super().__init__(title)
        self._lines = tuple(lines)

    def inside(self) -> Iterable[LineView]:
        """The question."""
        yield LineView(self._lines, id="question")

    def action_answer(self, yes: bool) -> None:
        """Answer."""
        self.dismiss(yes)

    def action_close(self) -> None:
        """Closing it is no."""
        self.dismiss(False)


class AskPanel(QuestionPanel):
    """A question of a running repair, which the user can put off."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Look first")]

    def action_close(self) -> None:
        """Look at the screen below first."""
        self.dismiss(None)


class TypedLine(Input):
    """An input line that says how to end it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "submit", "Accept")]


class Prompt(Panel[str | None]):
    """A line to type."""

    def __init__(
        self, title: str, lines: Sequence[Line], *, suggester: Suggester | None = None, value: str = ""
    ) -> None:
        """`value` stands there already."""
        super().__init__(title)
        self._lines = tuple(lines)
        self._suggester = suggester
        self._value = value

    def inside(self) -> Iterable[Static | Input]:
        """The prompt and its input line."""
        yield Static(content_of(self._lines))
        yield TypedLine(self._value, suggester=self._suggester, id="typed", select_on_focus=False)

    def on_mount(self) -> None:
        """Type at once."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer what was typed; nothing is no answer."""
        event.stop()
        self.dismiss(event.value.strip() or None)
