"""Error texts given as such, kept as files so that a plan, a record and a command line can name them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from envmedic import xdg
from envmedic.errors import InputError
from envmedic.redact import redact_text

KEPT_TEXTS = 20


def keep_text(text: str) -> Path:
    """Write an error text, without secrets, where commands can read it, for its owner alone, and return the file.

    The same text has the same file; only the newest few texts are kept. Raises InputError where it cannot be written.
    """
    # Named by its hash: a text that is given again replaces its own file and adds none.
    folder = xdg.cache() / "envmedic" / "pasted"
    path = folder / f"{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # private from its creation on: error texts hold paths and host names
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(redact_text(text))
        for old in sorted(folder.glob("*.log"), key=lambda item: item.stat().st_mtime)[:-KEPT_TEXTS]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"The error text cannot be kept at {path}", cause=error.strerror, hint="Make room there, or name a file"
        ) from error
    return path
