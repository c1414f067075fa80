"""Box for a pasted error text, or for one that a terminal without bracketed paste types key by key."""

from __future__ import annotations

from textual import events
from textual.timer import Timer

from envmedic.render.text import Line, TextPart, line
from envmedic.tui.messages import TextGiven
from envmedic.tui.widgets.lines import LineView

DEBOUNCE_S = 0.15
"""Silence after which a text counts as given: a terminal without bracketed paste sends it key by key."""
PROMPT = "Paste an error text here, or anywhere on this screen"


class PasteBox(LineView):
    """The error text. A paste replaces it, keys add to it; nothing in it is interpreted."""

    HELP = (
        "The error text. Paste anywhere on this screen, and it is matched as it arrives: first alone, then with the "
        "facts of the chosen environment. A new paste takes the place of the last one; Backspace takes away the last "
        "character, Ctrl+U all of it. Nothing in it is carried out or interpreted."
    )

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
        elif event.key == "ctrl+u":
            self._change("")
        elif event.key == "enter":
            self._change(self._raw + "\n")
        elif event.is_printable and event.character is not None:
            self._change(self._raw + event.character)
        else:
            return
        event.stop()
        event.prevent_default()

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
        self.post_message(TextGiven(self._raw))

    def _draw(self) -> None:
        shown: list[Line] = (
            [line(text) for text in self._raw.split("\n")] if self._raw else [(TextPart(PROMPT, "dim"),)]
        )
        self.show(shown)
        self.call_after_refresh(self.scroll_end, animate=False)  # what an error ends with tells most
