"""Lines that can be scrolled and searched, drawn only where they are seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from envmedic.render.cells import marked, wrapped
from envmedic.render.text import Line, bare, visible
from envmedic.tui.widgets.content import MEASURE

if TYPE_CHECKING:
    from envmedic.tui.app import EnvmedicApp


class Toned(ScrollView):
    """A scrolled widget that draws lines with tones."""

    def strip_of(self, line: Line, width: int, base: Style) -> Strip:
        """`line` drawn from its left edge, filled up to `width`."""
        # Rich styles, not Textual content: only visible rows are drawn, many times a second
        tones = cast("EnvmedicApp", self.app).tones
        segments = [Segment(visible(text), base + tones[tone]) for text, tone in line if text]
        return Strip(segments).crop_extend(self.scroll_offset.x, self.scroll_offset.x + width, base)


class LineView(Toned, can_focus=True):
    """Lines of text, wrapped at the width that there is, and at what is read easily."""

    HELP = "A text. Scroll it with the arrow keys, PgUp and PgDn, Home and End; / searches it."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False),
        Binding("k", "scroll_up", "Up", show=False),
        Binding("n", "next_match(1)", "Next match", show=False),
        Binding("N", "next_match(-1)", "Match before", show=False),
    ]
    DEFAULT_CSS = """
    LineView {
        background: $surface; color: $foreground; overflow-x: hidden;
        scrollbar-size-vertical: 1; scrollbar-gutter: stable;
    }
    """

    def __init__(self, lines: Sequence[Line] = (), *, id: str | None = None, about: str = "") -> None:
        """`about` is what help says of it before its keys."""
        super().__init__(id=id)
        self.about = about
        self._lines = tuple(lines)
        self._rows: list[Line] = []
        self._width = 0
        self._needle = ""

    def show(self, lines: Sequence[Line], *, home: bool = False) -> None:
        """Show other lines; the place is kept unless `home`."""
        # Most refreshes of a screen change other parts; wrapping again takes time.
        if tuple(lines) == self._lines and not home:
            return
        self._lines = tuple(lines)
        self._wrap()
        if home:
            self.scroll_home(animate=False)

    @property
    def text(self) -> str:
        """All of it, unwrapped."""
        return "\n".join(map(bare, self._lines))

    def on_resize(self, _event: events.Resize) -> None:
        """Wrap again for the new width."""
        if self.scrollable_content_region.width != self._width:
            self._wrap()

    def _wrap(self) -> None:
        self._width = self.scrollable_content_region.width
        # before the first layout there is no width to wrap at
        if self._width:
            self._rows = [row for line in self._lines for row in wrapped(line, min(self._width, MEASURE))]
            self.virtual_size = Size(self._width, len(self._rows))
        self.refresh()

    def search(self, needle: str) -> int:
        """Mark `needle` wherever it stands, go to the first place, and return the number of rows that hold it."""
        self._needle = needle
        self.refresh()
        places = self._places()
        if places:
            self._go(next((row for row in places if row >= self.scroll_offset.y), places[0]))
        return len(places)

    def _places(self) -> list[int]:
        wanted = self._needle.lower()
        return [number for number, row in enumerate(self._rows) if wanted in bare(row).lower()] if wanted else []

    def action_next_match(self, step: int) -> None:
        """Go to the next row that holds what was searched, or the one before."""
        places, here = self._places(), self.scroll_offset.y
        if step > 0:
            self._go(next((row for row in places if row > here), places[0] if places else here))
        else:
            self._go(next((row for row in reversed(places) if row < here), places[-1] if places else here))

    def _go(self, row: int) -> None:
        self.scroll_to(y=row, animate=False)

    def show_row(self, row: int) -> None:
        """Bring a row into sight, in the middle where something has to move."""
        height = self.scrollable_content_region.height
        if not self.scroll_offset.y <= row < self.scroll_offset.y + height - 1:
            self.scroll_to(y=max(row - height // 2, 0), animate=False)

    def render_line(self, y: int) -> Strip:
        """One row of what is seen."""
        row = y + self.scroll_offset.y
        line = self._rows[row] if row < len(self._rows) else ()
        return self.strip_of(marked(line, self._needle) if self._needle else line, self.size.width, self.rich_style)
