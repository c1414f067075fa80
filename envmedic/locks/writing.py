"""Writer for locks, in the chosen format."""

from __future__ import annotations

from pathlib import Path

from envmedic.errors import InputError
from envmedic.locks.completeness import with_gaps
from envmedic.locks.formats import LOCK_FORMATS
from envmedic.model.lock import Lock, LockFormatName


def written(lock: Lock, name: LockFormatName) -> tuple[Lock, str]:
    """`lock` with its gaps in that format, and the text of the rest. Raises InstallerError without conda-lock."""
    form = LOCK_FORMATS[name]
    found = with_gaps(lock, form)
    return found, form.write(found)


def save(text: str, path: Path) -> None:
    """Write a lock file, whole or not at all. Raises InputError where it cannot be written."""
    # beside the target, not in /tmp: `replace` is atomic within one file system only
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        hint = "Name another file with -o"
        raise InputError(f"The lock {path} cannot be written", cause=error.strerror, hint=hint) from error
