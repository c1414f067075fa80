"""The panel behind `?`."""

from __future__ import annotations

from typing import Final

from textual.binding import Binding
from textual.screen import Screen
from textual.widget import Widget

from envmedic.tui.panels.base import TextPanel
from envmedic.tui.views.help import Key, help_lines
from envmedic.tui.widgets.lines import LineView

_MOVES: Final = ("scroll", "page_", "cursor", "focus_", "first", "last", "copy_text")
"""What actions begin with that Textual itself has."""


def help_panel(screen: Screen[object]) -> TextPanel:
    """Help for what has the focus on `screen`."""
    bindings = [item.binding for item in screen.active_bindings.values() if item.enabled and not item.binding.system]
    ordered = sorted(bindings, key=_rank)
    keys = [Key(screen.app.get_key_display(item), item.description) for item in ordered if item.description]
    return TextPanel("Help", help_lines(_about(screen.focused, screen), keys))


def _rank(binding: Binding) -> int:
    """What the footer shows comes first, then what else is envmedic's; how to move about everybody knows."""
    moves = binding.action.rpartition(".")[2].startswith(_MOVES)
    return 2 if moves and not binding.show else int(not binding.show)


def _about(focused: Widget | None, screen: Screen[object]) -> str:
    """The help of the innermost part that has some."""
    for node in focused.ancestors_with_self if focused is not None else (screen,):
        about = node.about if isinstance(node, LineView) and node.about else node.HELP
        if about:
            return about
    return ""
