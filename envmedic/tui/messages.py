"""Messages from widgets to their screen."""

from __future__ import annotations

from textual.message import Message

from envmedic.model.findings import Finding


class TextGiven(Message):
    """The user has given an error text: pasted or typed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class EnvironmentChosen(Message):
    """The user works on another environment."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self.prefix = prefix


class FindingOpened(Message):
    """The user wants to read a finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding
