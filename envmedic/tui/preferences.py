"""Preference kept between runs of the terminal UI: the theme, in ``$XDG_CONFIG_HOME/envmedic/theme``."""

from __future__ import annotations

from pathlib import Path

from envmedic import xdg
from envmedic.errors import InputError


def theme_file() -> Path:
    """The file that holds the name of the theme."""
    return xdg.config() / "envmedic" / "theme"


def kept_theme() -> str | None:
    """The theme that was chosen last, None where none was. Raises InputError where that cannot be read."""
    path = theme_file()
    try:
        # an unknown name is no error: the App takes the dark theme for it
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(
            f"The theme in {path} cannot be read", cause=error.strerror, hint="Make it readable, or remove it"
        ) from error


def keep_theme(name: str) -> None:
    """Save `name` as the theme of later runs. Raises InputError where it cannot be written."""
    path = theme_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"The theme cannot be kept in {path}",
            cause=error.strerror,
            hint="It is used until envmedic ends; the variable ENVMEDIC_THEME names one too",
        ) from error
