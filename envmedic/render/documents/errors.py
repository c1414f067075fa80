"""Errors: what happened, the likely cause, one next step, and the state of the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from envmedic import __version__
from envmedic.errors import CHANGED, RECOVERABLE, EnvmedicError, InternalError
from envmedic.model.record import ErrorDocument, error_document
from envmedic.render.next_command import aimed
from envmedic.render.text import Line, TextPart, joined, part, with_commands

_STATES = {
    RECOVERABLE: "A transaction was interrupted; `envmedic recover` settles it",
    CHANGED: "The environment was exchanged before this; see `envmedic history`",
}


def error_lines(error: EnvmedicError | ErrorDocument, target: Sequence[str] = ()) -> list[Line]:
    """The whole error, without secrets; `target` are the words by which the user named the environment."""
    error = error_document(error) if isinstance(error, EnvmedicError) else error
    state = aimed(_STATES.get(error.environment, "The environment is unchanged"), target)
    return [*failure_lines(error, target), (TextPart("  "), *with_commands(state))]


def failure_lines(error: ErrorDocument, target: Sequence[str] = ()) -> list[Line]:
    """The error without the state of the environment: details (mistakes, or a tool's output), cause, next step.

    Where cause and details share lines, each is shown once.
    """
    cause = (error.cause or "").splitlines()
    details = [text.rstrip() for detail in error.details for text in detail.splitlines() if text.strip()]
    if cause and all(text in details for text in cause) and len(details) > 1:
        cause = []
    details = [text for text in details if text.strip().removeprefix("cause:").strip() not in cause]
    return [
        joined(part("error:", "bad"), " ", part(error.summary, "bold")),
        *(joined(part("  | ", "dim"), text) for text in details),
        *(
            (part(f"  {'cause:' if number == 0 else '      '} ", "bold"), *with_commands(text))
            for number, text in enumerate(cause)
        ),
        *([(part("  hint: ", "accent"), *with_commands(aimed(error.hint, target)))] if error.hint else []),
    ]


def bug(error: BaseException, *, environment: str) -> InternalError:
    """The error for a bug of envmedic, with the details that a report needs."""
    import traceback

    trace = "".join(traceback.format_exception(error))
    where = f"envmedic {__version__}, Python {sys.version.split()[0]}, {os.uname().sysname} {os.uname().release}"
    return InternalError(
        f"A bug of envmedic: {type(error).__name__}: {error}",
        cause=where,
        hint="Report it with the lines above",
        environment=environment,
        details=(trace,),
    )
