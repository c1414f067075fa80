"""Messages from widgets to their screen."""

from __future__ import annotations

from textual.message import Message


class TextGiven(Message):
    """The user has given an error text: pasted or typed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
