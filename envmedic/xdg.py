"""Where a user's own files lie, also where there is no such user: containers run as numbers that nobody has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_NOWHERE = "/nonexistent"
"""Debian's home of users without one: nothing is there, and nothing can be made there."""


def home(variables: Mapping[str, str] | None = None) -> Path:
    """The home directory by HOME, else by the user's account; one that does not exist where neither tells."""
    stated = (os.environ if variables is None else variables).get("HOME") or os.path.expanduser("~")  # noqa: PTH111  # Path.home() raises
    return Path(stated if stated.startswith("/") else _NOWHERE)


def cache(variables: Mapping[str, str] | None = None) -> Path:
    """Where programs keep what they can make again: ``$XDG_CACHE_HOME``."""
    return _stated("XDG_CACHE_HOME", ".cache", variables)


def config(variables: Mapping[str, str] | None = None) -> Path:
    """Where programs keep the user's settings: ``$XDG_CONFIG_HOME``."""
    return _stated("XDG_CONFIG_HOME", ".config", variables)


def data(variables: Mapping[str, str] | None = None) -> Path:
    """Where programs keep what belongs to the user: ``$XDG_DATA_HOME``."""
    return _stated("XDG_DATA_HOME", ".local/share", variables)


def state(variables: Mapping[str, str] | None = None) -> Path:
    """Where programs keep what they remember between runs: ``$XDG_STATE_HOME``."""
    return _stated("XDG_STATE_HOME", ".local/state", variables)


def _stated(name: str, usual: str, variables: Mapping[str, str] | None) -> Path:
    """Source: the XDG Base Directory Specification."""
    stated = (os.environ if variables is None else variables).get(name)
    return Path(stated) if stated else home(variables) / usual


def expanded(path: str) -> Path:
    """`path` with a leading ``~`` or ``~user`` filled in; as it is where there is no such user."""
    if path == "~" or path.startswith("~/"):
        return home() / path[2:]
    return Path(os.path.expanduser(path))  # noqa: PTH111  # Path.expanduser raises
