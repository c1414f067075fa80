"""Themes: dark, light and high contrast. No meaning is carried by colour alone."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

DARK, LIGHT, CONTRAST = "dark", "light", "high-contrast"
VARIABLE: Final = "ENVMEDIC_THEME"
"""The environment variable that names a theme."""

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
        variables={"footer-key-foreground": "#5fd7d7", "border": "#3b4252", "border-blurred": "#2e3440"},
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
        variables={"footer-key-foreground": "#006a6a", "border": "#8a8f98", "border-blurred": "#c4c8ce"},
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
            "footer-key-foreground": "#00ffff",
            "border": "#ffffff",
            "border-blurred": "#808080",
            "text-muted": "#e0e0e0",
            "block-cursor-foreground": "#000000",
            "block-cursor-background": "#ffffff",
            "block-cursor-blurred-background": "#404040",
        },
    ),
)
