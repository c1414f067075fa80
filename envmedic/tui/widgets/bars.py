"""The lines at the edges of every screen."""

from __future__ import annotations

from textual.widgets import Input, Static

from envmedic.tui.text import Part, end, padded, visible, width
from envmedic.tui.widgets.content import content_of


class TitleBar(Static):
    """Where one is, and what runs in the background."""

    DEFAULT_CSS = "TitleBar { height: 1; background: $panel; color: $foreground; padding: 0 1; }"

    def show(self, title: str, about: str, busy: str) -> None:
        """Draw it for the width that there is."""
        cells = max(self.app.size.width - 2, 10)
        left = end(f"{title}  {visible(about)}", cells)
        right = end(visible(busy), max(cells - width(left) - 2, 0))
        head = left[: len(title)]
        rest = padded(left[len(title) :], cells - width(head) - width(right))
        self.update(content_of([(Part(head, "accent"), Part(rest), Part(right, "dim"))]))


class CommandLine(Static):
    """The line of the command-line interface that does what the screen shows."""

    DEFAULT_CSS = "CommandLine { height: 1; background: $surface; color: $text-muted; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.line = ""
        """The whole line, also where there is no room for it."""

    def show(self, line: str) -> None:
        """Draw it for the width that there is."""
        self.line = line
        text = end(f"$ {visible(line)}" if line else "", max(self.app.size.width - 2, 10))
        self.update(content_of([(Part(text, "dim"),)]))


class SearchBar(Input):
    """What is typed after `/`."""

    HELP = "What to look for. Enter keeps it, Escape takes it back."
    DEFAULT_CSS = """
    SearchBar { display: none; height: 1; border: none; padding: 0 1; background: $panel; }
    SearchBar:focus { border: none; }
    SearchBar.-open { display: block; }
    """
