"""The panel behind `?`."""

from __future__ import annotations

from textual.screen import Screen
from textual.widget import Widget

from envmedic.tui.screens.panels import TextPanel
from envmedic.tui.views.help import Key, help_lines
from envmedic.tui.widgets.lines import LineView


def help_panel(screen: Screen[object]) -> TextPanel:
    """Help for what has the focus on `screen`."""
    keys = [
        Key(screen.app.get_key_display(active.binding), active.binding.description)
        for active in screen.active_bindings.values()
        if active.enabled and active.binding.description and not active.binding.system
    ]
    return TextPanel("Help", help_lines(_about(screen.focused, screen), keys))


def _about(focused: Widget | None, screen: Screen[object]) -> str:
    """The help of the innermost part that has some."""
    for node in focused.ancestors_with_self if focused is not None else (screen,):
        about = node.about if isinstance(node, LineView) and node.about else node.HELP
        if about:
            return about
    return ""
