"""What the terminal UI keeps between runs: the theme, by the user's choice, and how it was left."""

from __future__ import annotations

from pathlib import Path

import msgspec

from envmedic import xdg
from envmedic.errors import InputError

NARROWEST, WIDEST = 20, 60
"""Limits of the list's width, in percent."""


class UiLayout(msgspec.Struct, frozen=True):
    """How the UI was left."""

    environment: str = ""
    """Prefix that was worked on last."""
    list_percent: int = 36
    """Width of the list of environments, where it stands beside what is found."""
    commands: bool = False
    """Whether plans show their commands."""


def theme_file() -> Path:
    """The file that holds the name of the theme."""
    return xdg.config() / "envmedic" / "theme"


def layout_file() -> Path:
    """The file that holds the layout."""
    return xdg.state() / "envmedic" / "ui.json"


def kept_theme() -> str | None:
    """The theme that was chosen last, None where none was. Raises InputError where that cannot be read."""
    # an unknown name is no error: the App takes the dark theme for it
    text = _read(theme_file(), "The theme")
    return text.strip() if text is not None else None


def kept_layout() -> UiLayout:
    """The layout of the last run, the usual one where there was none. Raises InputError where it cannot be read."""
    path = layout_file()
    text = _read(path, "The layout of the last run")
    if text is None:
        return UiLayout()
    try:
        found = msgspec.json.decode(text, type=UiLayout)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InputError(
            f"The layout of the last run in {path} is damaged", cause=str(error), hint="Remove the file"
        ) from error
    return msgspec.structs.replace(found, list_percent=min(max(found.list_percent, NARROWEST), WIDEST))


def keep_theme(name: str) -> None:
    """Save `name` as the theme of later runs. Raises InputError where it cannot be written."""
    _write(
        theme_file(),
        name + "\n",
        "The theme",
        "It is used until envmedic ends; the variable ENVMEDIC_THEME names one too",
    )


def keep_layout(layout: UiLayout) -> None:
    """Save the layout for the next run. Raises InputError where it cannot be written."""
    text = msgspec.json.encode(layout).decode() + "\n"
    _write(layout_file(), text, "The layout", "It is used until envmedic ends")


def _read(path: Path, what: str) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(
            f"{what} in {path} cannot be read", cause=error.strerror, hint="Make it readable, or remove it"
        ) from error


def _write(path: Path, text: str, what: str, hint: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{what} cannot be kept in {path}", cause=error.strerror, hint=hint) from error
