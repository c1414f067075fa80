"""The lines at the edges of every screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from textual import events
from textual.binding import Binding
from textual.widgets import Input, Static

from envmedic.render.cells import end, padded, width
from envmedic.render.text import TextPart, visible
from envmedic.tui.widgets.content import content_of


class TitleBar(Static):
    """The title of the screen, and the work in the background."""

    DEFAULT_CSS = "TitleBar { height: 1; background: $panel; color: $foreground; padding: 0 1; }"

    def show(self, title: str, about: str, busy: str) -> None:
        """Draw it for the width that there is."""
        cells = max(self.app.size.width - 2, 10)
        left = end(f"{title}  {visible(about)}", cells)
        right = end(visible(busy), max(cells - width(left) - 2, 0))
        head = left[: len(title)]
        rest = padded(left[len(title) :], cells - width(head) - width(right))
        # one line at any time: without `layout=False`, every change would lay out the whole screen
        self.update(content_of([(TextPart(head, "accent"), TextPart(rest), TextPart(right, "dim"))]), layout=False)


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
        self.update(content_of([(TextPart(text, "dim"),)]), layout=False)


GAP: Final = "  "
"""Between two keys."""
FIRST: Final = ("Yes", "Repair")
ENTER: Final = ("Enter", "⏎")
LAST: Final = ("Search", "Copy line", "Quit", "Commands", "Help")
"""What works everywhere comes after what a screen is about, and consent before refusal."""
ALWAYS: Final = frozenset({"Quit", "Commands", "Help"})


class KeyHint(NamedTuple):
    """A key with what it does."""

    key: str
    binding: Binding

    @property
    def cells(self) -> int:
        """Its width, with the gap after it."""
        return width(self.key) + 1 + width(self.binding.description) + len(GAP)


def fitting(keys: Sequence[KeyHint], room: int) -> list[KeyHint]:
    """The keys that fit in `room` cells, those of `LAST` last. The way out, all commands and help always fit."""
    ordered = sorted(keys, key=_rank)
    left = room + len(GAP) - sum(item.cells for item in ordered if item.binding.description in ALWAYS)
    taken: list[KeyHint] = []
    for item in ordered:
        always = item.binding.description in ALWAYS
        if always or item.cells <= left:
            left -= 0 if always else item.cells
            taken.append(item)
    return taken


def _rank(item: KeyHint) -> int:
    what = item.binding.description
    if item.key in ENTER:
        return -2  # what one most likely wants stands first, on every screen
    return LAST.index(what) + 1 if what in LAST else -1 if what in FIRST else 0


class KeyBar(Static):
    """The keys that work here: one line, drawn at once, where a widget for each key would be slow to change."""

    DEFAULT_CSS = "KeyBar { height: 1; dock: bottom; background: $panel; color: $foreground; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._keys: list[tuple[str, str]] = []
        self._ends: list[int] = []

    def on_mount(self) -> None:
        """Follow the focus."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self._draw())

    def on_resize(self) -> None:
        """Draw for the new width."""
        self._draw()

    def _draw(self) -> None:
        active = [item.binding for item in self.screen.active_bindings.values() if item.enabled and item.binding.show]
        keys = {item.description: KeyHint(self.app.get_key_display(item), item) for item in active if item.description}
        parts: list[TextPart] = []
        self._keys, self._ends = [], []
        used = 0
        for shown in fitting(tuple(keys.values()), max(self.app.size.width - 2, 10)):
            parts += [TextPart(shown.key, "accent"), TextPart(f" {shown.binding.description}{GAP}")]
            used += shown.cells
            self._keys.append((shown.binding.key, shown.binding.description))
            self._ends.append(used)
        self.update(content_of([tuple(parts)]), layout=False)

    async def on_click(self, event: events.Click) -> None:
        """A click on a key is that key."""
        at = event.x - 1
        hit = next((number for number, stop in enumerate(self._ends) if at < stop), None)
        if hit is not None:
            self.app.simulate_key(self._keys[hit][0])


class SearchBar(Input):
    """Input line of the search."""

    HELP = "What to look for. Enter keeps it, Escape takes it back."
    DEFAULT_CSS = """
    SearchBar { height: 1; border: none; padding: 0 1; background: $panel; }
    SearchBar:focus { border: none; }
    """
