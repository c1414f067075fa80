"""A log that grows: tens of thousands of lines, of which only those in sight are ever drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.strip import Strip

from envmedic.render.cells import marked, width
from envmedic.render.log_tones import toned
from envmedic.render.text import visible
from envmedic.tui.widgets.lines import Toned

KEPT_LINES = 200_000
"""Older lines go: a terminal shows the end of a log, and files hold all of it."""


class LogView(Toned, can_focus=True):
    """Lines as they come, shown as text whatever is in them. It follows the end until it is paused or scrolled up."""

    HELP = (
        "What is printed, as it comes. It follows the end; space pauses and goes on, scrolling up pauses too. "
        "/ searches, n and N go to the next match and the one before."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "Pause"),
        Binding("n", "next_match(1)", "Next match", show=False),
        Binding("N", "next_match(-1)", "Match before", show=False),
    ]
    DEFAULT_CSS = "LogView { background: $surface; color: $foreground; scrollbar-size: 1 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[str] = []
        self._cells = 0
        self._needle = ""
        self._following = True

    @property
    def following(self) -> bool:
        """Whether new lines move what is seen; its frame, if it has one, says where not."""
        return self._following

    @following.setter
    def following(self, follows: bool) -> None:
        if follows != self._following:
            self._following = follows
            self.border_subtitle = "" if follows else "paused: space follows again"

    @property
    def lines(self) -> tuple[str, ...]:
        """The kept lines, unchanged."""
        return tuple(self._lines)

    def add(self, lines: Iterable[str]) -> None:
        """Append lines; the cost is that of the lines, not of the log."""
        fresh = list(lines)
        if not fresh:
            return
        self._lines += fresh
        gone = max(len(self._lines) - KEPT_LINES, 0)
        del self._lines[:gone]
        # never narrower again: that would take a pass over all kept lines
        self._cells = max(self._cells, *(width(visible(text)) for text in fresh))
        self.virtual_size = Size(self._cells, len(self._lines))
        if self.following:
            self._to_end()
        elif gone:
            self.set_reactive(LogView.scroll_y, max(self.scroll_y - gone, 0))  # what is read stays in place
        self.refresh()

    def on_resize(self, _event: events.Resize) -> None:
        """The end stays in sight."""
        if self.following:
            self._to_end()

    def _to_end(self) -> None:
        self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)

    def action_pause(self) -> None:
        """Stop following the end, or follow it again."""
        self.following = not self.following
        if self.following:
            self._to_end()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Stop following when the user scrolls up, so that new lines do not move the text; follow again at the end."""
        super().watch_scroll_y(old_value, new_value)
        if new_value >= self.max_scroll_y:
            self.following = True
        elif new_value < old_value:
            self.following = False

    def search(self, needle: str) -> int:
        """Mark `needle`, go to the last place before what is seen, and return the number of lines that hold it."""
        self._needle = needle
        places = self._places()
        if places:
            self._go(next((row for row in places if row >= self.scroll_offset.y), places[-1]))
        self.refresh()
        return len(places)

    def _places(self) -> list[int]:
        wanted = self._needle.lower()
        return [number for number, text in enumerate(self._lines) if wanted in text.lower()] if wanted else []

    def action_next_match(self, step: int) -> None:
        """Go to the next line that holds what was searched, or the one before."""
        places, here = self._places(), self.scroll_offset.y
        ahead = [row for row in places if row > here] if step > 0 else [row for row in places if row < here][::-1]
        if ahead:
            self._go(ahead[0])

    def _go(self, row: int) -> None:
        self.following = False
        self.scroll_to(y=row, animate=False)

    def render_line(self, y: int) -> Strip:
        """One row of what is seen."""
        row = y + self.scroll_offset.y
        shown = toned(self._lines[row]) if row < len(self._lines) else ()
        return self.strip_of(marked(shown, self._needle), self.size.width, self.rich_style)
