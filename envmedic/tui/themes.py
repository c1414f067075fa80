"""Themes: dark, light and high contrast. No meaning is carried by colour alone."""

from __future__ import annotations

from functools import cache
from typing import Final

from rich.style import Style
from textual.theme import Theme

DARK, LIGHT, CONTRAST = "dark", "light", "high-contrast"
VARIABLE: Final = "ENVMEDIC_THEME"
"""The environment variable that names a theme."""

TONES: Final[dict[str, dict[str, str]]] = {
    DARK: {"good": "#87c38a", "bad": "#ef7a7a", "warn": "#e5c07b", "dim": "#8b93a1", "accent": "#5fd7d7"},
    LIGHT: {"good": "#005f00", "bad": "#af0000", "warn": "#875f00", "dim": "#5c6370", "accent": "#006a6a"},
    CONTRAST: {"good": "#00ff00", "bad": "#ff8080", "warn": "#ffff00", "dim": "#e0e0e0", "accent": "#00ffff"},
}
"""Colours of tones by theme. The strongest tones are bold too, and marks carry the meaning without colour."""


def _named(theme: str) -> dict[str, str]:
    """The tones of a theme as variables of its style sheet."""
    return {f"tone-{tone}": colour for tone, colour in TONES[theme].items()}


THEMES: Final = (
    Theme(
        name=DARK,
        primary="#5fafd7",
        secondary="#8787af",
        warning="#e5c07b",
        error="#ef7a7a",
        success="#87c38a",
        accent="#5fd7d7",
        foreground="#d8dee9",
        background="#14171c",
        surface="#1a1e25",
        panel="#252b35",
        dark=True,
        variables={
            **_named(DARK),
            "footer-key-foreground": "#5fd7d7",
            "border": "#3b4252",
            "border-blurred": "#2e3440",
            "block-cursor-foreground": "#ffffff",  # tones must be read on it too
            "block-cursor-background": "#2a5074",
            "block-cursor-blurred-background": "#2a313c",
        },
    ),
    Theme(
        name=LIGHT,
        primary="#005f87",
        secondary="#5f5f87",
        warning="#875f00",
        error="#af0000",
        success="#005f00",
        accent="#006a6a",
        foreground="#1c1c1c",
        background="#fafafa",
        surface="#f0f0f0",
        panel="#e2e4e8",
        dark=False,
        variables={
            **_named(LIGHT),
            "footer-key-foreground": "#006a6a",
            "border": "#8a8f98",
            "border-blurred": "#c4c8ce",
            "block-cursor-foreground": "#000000",
            "block-cursor-background": "#c3def0",
            "block-cursor-blurred-background": "#dfe2e6",
        },
    ),
    Theme(
        name=CONTRAST,
        primary="#ffffff",
        secondary="#ffffff",
        warning="#ffff00",
        error="#ff8080",
        success="#00ff00",
        accent="#00ffff",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#1c1c1c",
        dark=True,
        text_alpha=1.0,
        variables={
            **_named(CONTRAST),
            "footer-key-foreground": "#00ffff",
            "border": "#ffffff",
            "border-blurred": "#808080",
            "text-muted": "#e0e0e0",
            "block-cursor-foreground": "#ffffff",
            "block-cursor-background": "#000090",
            "block-cursor-blurred-background": "#404040",
        },
    ),
)


@cache
def tone_styles(theme: str) -> dict[str, Style]:
    """Styles of tones in that theme, an unknown one being the dark one."""
    colours = TONES.get(theme, TONES[DARK])
    styles = {tone: Style(color=colour, bold=tone in {"bad", "accent"} or None) for tone, colour in colours.items()}
    marks = {"bold": Style(bold=True), "match": Style(reverse=True, bold=True), "command": styles["accent"]}
    return {**styles, **marks, "plain": Style()}
