"""Reports of bugs of envmedic: the traceback is kept in a file, and the terminal shows where."""

from __future__ import annotations

import os
import time
from pathlib import Path

from envmedic import xdg
from envmedic.errors import EnvmedicError, InternalError
from envmedic.redact import redact_text


def folder() -> Path:
    """Where reports are kept, readable by their owner alone."""
    return xdg.state() / "envmedic" / "bugs"


def kept(error: EnvmedicError) -> EnvmedicError:
    """`error` as it is, or a bug with its traceback in a file in place of its details.

    Where no file can be written, the traceback stays: it is all that a report has.
    """
    if not isinstance(error, InternalError) or not error.details:
        return error
    path = folder() / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    text = "\n".join([error.summary, error.cause or "", "", *error.details])
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # private from its creation on: a traceback may hold paths and host names
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(redact_text(text) + "\n")
    except OSError:
        return error
    return InternalError(
        error.summary,
        cause=error.cause,
        hint=f"Report it with the file {path}, which has the traceback",
        environment=error.environment,
    )
