"""Themes: dark, light and high contrast, each for the colours that a terminal has. No meaning is carried by colour alone."""

from __future__ import annotations

from typing import Final, Literal

from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from envmedic.render.text import Tone

DARK, LIGHT, CONTRAST = "dark", "light", "high-contrast"
OWN: Final = (DARK, LIGHT, CONTRAST)
VARIABLE: Final = "ENVMEDIC_THEME"
"""The environment variable that names a theme."""
Depth = Literal["truecolor", "256", "standard"]
"""The colours of a terminal, as Rich names them."""
TONES: Final[tuple[Tone, ...]] = ("good", "bad", "warn", "dim", "accent")
"""Tones that have a colour. The strongest are bold too, and marks carry the meaning without colour."""
_DIM: Final = 0.4
"""How far the dim tone of a built-in theme is from its text towards its background."""

_ROLES: Final = (
    "foreground", "background", "surface", "panel", "primary", "secondary", "good", "bad", "warn", "dim", "accent",
    "border", "border-blurred", "cursor", "cursor-text", "cursor-blurred",
)  # fmt: skip
_COLOURS: Final[dict[tuple[str, Depth], str]] = {
    (DARK, "truecolor"): "d8dee9 14171c 1a1e25 252b35 5fafd7 a5a5cf 87c38a ff9090 e5c07b a0a8b6 5fd7d7 3b4252 2e3440 1d3d5c ffffff 2a313c",
    # values of the palettes themselves: the nearest ones to others turn a calm slate into black, navy and teal
    (DARK, "256"): "d0d0d0 121212 1c1c1c 303030 5fafd7 afafd7 87d787 ff8787 ffd787 9e9e9e 5fd7d7 444444 303030 000087 ffffff 303030",
    (DARK, "standard"): "ffffff 000000 000000 000000 55ffff aaaaaa 55ff55 ff5555 ffff55 aaaaaa 55ffff aaaaaa 555555 0000aa ffffff 0000aa",
    (LIGHT, "truecolor"): "1c1c1c fafafa f0f0f0 e2e4e8 005f87 56567e 005f00 af0000 7a5500 565d69 006a6a 8a8f98 c4c8ce c3def0 000000 dfe2e6",
    (LIGHT, "256"): "1c1c1c ffffff eeeeee e4e4e4 005f87 5f005f 005f00 af0000 5f5f00 585858 005f5f 8a8a8a c6c6c6 afffff 000000 dadada",
    (LIGHT, "standard"): "000000 ffffff ffffff ffffff 0000aa 555555 00aa00 aa0000 aa5500 555555 0000aa 555555 aaaaaa ffff55 000000 ffff55",
    (CONTRAST, "truecolor"): "ffffff 000000 000000 1c1c1c ffffff ffffff 00ff00 ff8080 ffff00 e0e0e0 00ffff ffffff 808080 000090 ffffff 303030",
    (CONTRAST, "256"): "ffffff 000000 000000 1c1c1c ffffff ffffff 00ff00 ff8787 ffff00 e4e4e4 00ffff ffffff 808080 000087 ffffff 303030",
    (CONTRAST, "standard"): "ffffff 000000 000000 000000 ffffff ffffff 55ff55 ff5555 ffff55 ffffff 55ffff ffffff aaaaaa 0000aa ffffff 0000aa",
}  # fmt: skip
"""Colours in the order of the roles."""


def depth_of(colour_system: str | None) -> Depth:
    """The colours that a terminal has; without colours it does not matter."""
    return "256" if colour_system == "256" else "standard" if colour_system in {"standard", "windows"} else "truecolor"


def own_themes(depth: Depth) -> tuple[Theme, ...]:
    """The themes of envmedic for a terminal with these colours."""
    return tuple(_own(name, depth) for name in OWN)


def _own(name: str, depth: Depth) -> Theme:
    found = dict(zip(_ROLES, (f"#{value}" for value in _COLOURS[name, depth].split()), strict=True))
    return Theme(
        name=name,
        primary=found["primary"],
        secondary=found["secondary"],
        warning=found["warn"],
        error=found["bad"],
        success=found["good"],
        accent=found["accent"],
        foreground=found["foreground"],
        background=found["background"],
        surface=found["surface"],
        panel=found["panel"],
        dark=name != LIGHT,
        text_alpha=1.0 if name == CONTRAST else 0.95,
        variables={
            **{f"tone-{tone}": found[tone] for tone in TONES},
            "footer-key-foreground": found["accent"],
            "border": found["border"],
            "border-blurred": found["border-blurred"],
            "block-cursor-foreground": found["cursor-text"],  # tones must be read on it too
            "block-cursor-background": found["cursor"],
            "block-cursor-blurred-background": found["cursor-blurred"],
            **({"text-muted": found["dim"]} if name == CONTRAST else {}),
        },
    )


def built_in_themes() -> tuple[Theme, ...]:
    """Textual's own themes with colours for the tones; ``ansi-dark`` and ``ansi-light`` take those of the terminal."""
    return tuple(map(_with_tones, BUILTIN_THEMES.values()))


def _with_tones(theme: Theme) -> Theme:
    tones = {"good": theme.success, "bad": theme.error, "warn": theme.warning, "accent": theme.accent or theme.primary}
    tones["dim"] = "ansi_bright_black" if theme.ansi else _dim(theme)
    named = {f"tone-{tone}": colour or theme.primary for tone, colour in tones.items()}
    made = Theme(**{**vars(theme), "variables": {**theme.variables, **named}})
    # keys of the footer stand out as in envmedic's own themes
    made.variables.setdefault("footer-key-foreground", named["tone-accent"])
    return made


def _dim(theme: Theme) -> str:
    colours = theme.to_color_system().generate()
    return Color.parse(colours["foreground"]).blend(Color.parse(colours["background"]), _DIM).hex


def tone_styles(theme: Theme) -> dict[Tone, Style]:
    """Styles of the tones in that theme."""
    styles: dict[Tone, Style] = {}
    for tone in TONES:
        colour = Color.parse(theme.variables[f"tone-{tone}"]).rich_color
        styles[tone] = Style(color=colour, bold=tone in {"bad", "accent"} or None)
    marks: dict[Tone, Style] = {
        "bold": Style(bold=True),
        "match": Style(reverse=True, bold=True),
        "command": styles["accent"],
        "number": Style(color=Color.parse(theme.secondary or theme.primary).rich_color),
    }
    return {**styles, **marks, "plain": Style()}
