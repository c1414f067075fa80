"""Framed parts of a screen."""

from __future__ import annotations

from typing import TypeVar

from textual.widget import Widget

W = TypeVar("W", bound=Widget)
FRAMES = """
    .part {
        border: round $border; border-title-color: $text-muted; border-subtitle-color: $text-muted;
        background: $surface; padding: 0 0 0 1;
    }
    .part:focus { border: round $primary; border-title-color: $text-primary; }
"""
"""The style sheet of frames, within a screen's."""


def part(title: str, widget: W) -> W:
    """`widget`, before it is mounted, in a frame with a title."""
    widget.add_class("part", update=False)
    widget.border_title = title
    return widget
