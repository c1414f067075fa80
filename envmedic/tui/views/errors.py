"""Errors as lines."""

from __future__ import annotations

from envmedic.errors import EnvmedicError, InternalError
from envmedic.model.record import ErrorDocument
from envmedic.render.errors import error_lines, reason_lines
from envmedic.tui.text import COLOURED, Line, TextPart, line, rendered, visible


def error_view(error: EnvmedicError) -> list[Line]:
    """The whole error; of a bug, what to do with it."""
    lines = rendered(error_lines(error, COLOURED))
    if isinstance(error, InternalError):
        lines += [
            line(""),
            line("This is a bug of envmedic. Press c to copy this text, and report it with it.", "bold"),
        ]
    return lines


def failure_view(failure: ErrorDocument) -> list[Line]:
    """What ended a transaction, its cause and the next step; what became of the environment is said elsewhere."""
    return [(TextPart("error: ", "bad"), TextPart(visible(failure.summary))), *rendered(reason_lines(failure))]
