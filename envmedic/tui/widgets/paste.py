"""Box for a pasted error text, or for one that a terminal without bracketed paste types key by key."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.timer import Timer

from envmedic.render.text import Line, TextPart, line
from envmedic.tui.messages import TextGiven
from envmedic.tui.widgets.lines import LineView

DEBOUNCE_S = 0.15
"""Silence after which a text counts as given: a terminal without bracketed paste sends it key by key."""
SHORTEST = 4
"""Characters from which a text is matched."""
PROMPT = "Paste an error text here, or anywhere on this screen"


class PasteBox(LineView):
    """The error text. A paste replaces it, keys add to it; nothing in it is interpreted."""

    HELP = (
        "The error text. Paste anywhere on this screen, and it is matched as it arrives: first alone, then with the "
        "facts of the chosen environment. A new paste replaces the last one; Backspace removes the last character, "
        "Ctrl+L or Ctrl+U all of it. Escape leaves the box and keeps the text. Nothing in it is run or interpreted."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("ctrl+l,ctrl+u", "clear", "Clear"),
        Binding("tab", "screen.focus_next", "Next part"),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._raw = ""
        self._due: Timer | None = None

    def on_mount(self) -> None:
        """Say what it is for."""
        self._draw()

    @property
    def raw(self) -> str:
        """The text as it was given."""
        return self._raw

    def put(self, text: str) -> None:
        """Take a new text."""
        # terminals send a carriage return for every line break of a paste
        self._change(text.replace("\r\n", "\n").replace("\r", "\n"))

    def forget(self) -> None:
        """Remove the text without a message to the screen."""
        self._raw = ""
        self._draw()

    async def _on_key(self, event: events.Key) -> None:
        """Characters are text here, not commands."""
        if event.key == "backspace":
            self._change(self._raw[:-1])
        elif event.key == "enter":
            self._change(self._raw + "\n")
        elif event.is_printable and event.character is not None:
            self._change(self._raw + event.character)
        else:
            return
        event.stop()
        event.prevent_default()

    def action_leave(self) -> None:
        """Go on to the part before it; the text stays."""
        self.screen.focus_previous()

    def action_clear(self) -> None:
        """Remove all of the text."""
        self._change("")

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Which keys are text: the footer must not offer them as commands."""
        del key
        return character is not None and character.isprintable()

    def _change(self, text: str) -> None:
        self._raw = text
        self._draw()
        if self._due is not None:
            self._due.stop()
        self._due = self.set_timer(DEBOUNCE_S, self._tell)

    def _tell(self) -> None:
        # A key or two, meant as a command, are no error text and must not replace a diagnosis.
        self.post_message(TextGiven(self._raw if len(self._raw.strip()) >= SHORTEST else ""))

    def _draw(self) -> None:
        shown: list[Line] = (
            [line(text) for text in self._raw.split("\n")] if self._raw else [(TextPart(PROMPT, "dim"),)]
        )
        self.show(shown)
        self.call_after_refresh(self.scroll_end, animate=False)  # what an error ends with tells most
