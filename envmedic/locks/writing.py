"""A lock as text, in the format that was asked for."""

from __future__ import annotations

from pathlib import Path

from envmedic.errors import InputError
from envmedic.locks.completeness import judged
from envmedic.locks.formats import LOCK_FORMATS
from envmedic.model.lock import Lock, LockFormatName


def written(lock: Lock, name: LockFormatName) -> tuple[Lock, str]:
    """`lock` with what that format cannot hold, and the text of the rest. Raises InstallerError without conda-lock."""
    form = LOCK_FORMATS[name]
    found = judged(lock, form)
    return found, form.write(found)


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
