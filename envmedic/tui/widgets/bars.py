"""The lines at the edges of every screen."""

from __future__ import annotations

from textual import events
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
        self.update(content_of([(Part(head, "accent"), Part(rest), Part(right, "dim"))]), layout=False)


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
        self.update(content_of([(Part(text, "dim"),)]), layout=False)


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
        self._draw()

    def on_resize(self) -> None:
        """Draw for the new width."""
        self._draw()

    def _draw(self) -> None:
        active = [item.binding for item in self.screen.active_bindings.values() if item.enabled and item.binding.show]
        shown = list(
            {item.description: (self.app.get_key_display(item), item) for item in active if item.description}.values()
        )
        parts: list[Part] = []
        self._keys, self._ends = [], []
        room, used = max(self.app.size.width - 2, 10), 0
        for key, binding in shown:
            piece = width(key) + 1 + width(binding.description) + 2
            if used + piece - 2 > room:
                break
            parts += [Part(key, "accent"), Part(f" {binding.description}  ")]
            used += piece
            self._keys.append((binding.key, binding.description))
            self._ends.append(used)
        self.update(content_of([tuple(parts)]), layout=False)

    async def on_click(self, event: events.Click) -> None:
        """A click on a key is that key."""
        at = event.x - 1
        hit = next((number for number, stop in enumerate(self._ends) if at < stop), None)
        if hit is not None:
            self.app.simulate_key(self._keys[hit][0])


class SearchBar(Input):
    """What is typed after `/`."""

    HELP = "What to look for. Enter keeps it, Escape takes it back."
    DEFAULT_CSS = """
    SearchBar { display: none; height: 1; border: none; padding: 0 1; background: $panel; }
    SearchBar:focus { border: none; }
    SearchBar.-open { display: block; }
    """
