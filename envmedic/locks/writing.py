"""A lock as text, in the format that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

from envmedic.errors import InputError
from envmedic.locks.completeness import judged
from envmedic.model.lock import Lock, LockFormat

_WRITERS: Final[dict[LockFormat, str]] = {
    "conda-lock": "conda_lock",
    "pylock": "pylock",
    "requirements": "requirements",
    "environment": "environment",
    "dockerfile": "dockerfile",
}
FILENAMES: Final[dict[LockFormat, str]] = {
    "conda-lock": "conda-lock.yml",
    "pylock": "pylock.toml",
    "requirements": "requirements.txt",
    "environment": "environment.yml",
    "dockerfile": "Dockerfile",
}
"""The name that the format's own tools look for."""


def written(lock: Lock, form: LockFormat) -> tuple[Lock, str]:
    """`lock` with what that format cannot hold, and the text of the rest. Raises InstallerError without conda-lock."""
    found = judged(lock, form)
    writer: Callable[[Lock], str] = import_module(f"envmedic.locks.{_WRITERS[form]}").text
    return found, writer(found)


def save(text: str, path: Path) -> None:
    """Write a lock file, whole or not at all. Raises InputError where it cannot be written."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        hint = "Name another file with -o"
        raise InputError(f"The lock {path} cannot be written", cause=error.strerror, hint=hint) from error
