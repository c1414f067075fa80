"""An error as a page."""

from __future__ import annotations

from envmedic.errors import EnvmedicError, InternalError
from envmedic.render.documents.errors import error_lines
from envmedic.render.text import Line, line

_REPORT = "This is a bug of envmedic. Press c to copy this text, and report it with it."


def error_page(error: EnvmedicError) -> list[Line]:
    """The whole error; of a bug, how to report it."""
    bug = [line(""), line(_REPORT, "bold")] if isinstance(error, InternalError) else []
    return [*error_lines(error), *bug]
