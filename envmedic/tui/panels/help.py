"""Help for the part that has the focus: the panel behind `?`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from textual.binding import Binding
from textual.screen import Screen
from textual.widget import Widget

from envmedic.render.cells import padded, width
from envmedic.render.text import Line, TextPart, line
from envmedic.tui.panels.base import TextPanel
from envmedic.tui.widgets.lines import LineView

_MOVES: Final = ("scroll", "page_", "cursor", "focus_", "first", "last", "copy_text")
"""First words of Textual's own actions."""
GENERAL: Final = (
    "Tab goes to the next part, Shift+Tab to the one before. Nothing is changed in an environment before you say so: a "
    "plan is shown first, it is carried out in a clone, and undo brings the old environment back."
)


class Key(NamedTuple):
    """A key that works here."""

    key: str
    what: str


def help_panel(screen: Screen[object]) -> TextPanel:
    """Help for what has the focus on `screen`."""
    bindings = [item.binding for item in screen.active_bindings.values() if item.enabled and not item.binding.system]
    ordered = sorted(bindings, key=_rank)
    keys = [Key(screen.app.get_key_display(item), item.description) for item in ordered if item.description]
    return TextPanel("Help", help_lines(_about(screen.focused, screen), keys))


def _rank(binding: Binding) -> int:
    """What the footer shows comes first, then what else is envmedic's; how to move about everybody knows."""
    return 2 if moves_about(binding) and not binding.show else int(not binding.show)


def moves_about(binding: Binding) -> bool:
    """Whether a key only moves what is seen or highlighted."""
    return binding.action.rpartition(".")[2].startswith(_MOVES)


def _about(focused: Widget | None, screen: Screen[object]) -> str:
    """The help of the innermost part that has some."""
    for node in focused.ancestors_with_self if focused is not None else (screen,):
        about = node.about if isinstance(node, LineView) and node.about else node.HELP
        if about:
            return about
    return ""


def help_lines(about: str, keys: Iterable[Key]) -> list[Line]:
    """A part, its keys, and the rules that hold everywhere."""
    rows = list(dict.fromkeys(keys))
    cells = max((width(row.key) for row in rows), default=0)
    listed = [(TextPart(padded(row.key, cells) + "  ", "accent"), TextPart(row.what)) for row in rows]
    return [line(about or "This part has no help of its own."), line(""), *listed, line(""), line(GENERAL, "dim")]
