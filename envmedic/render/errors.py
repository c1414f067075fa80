"""Errors as text: what happened, the likely cause, one next step, and what became of the environment."""

from __future__ import annotations

import os
import sys

from envmedic import __version__
from envmedic.errors import CHANGED, RECOVERABLE, EnvmedicError, InternalError
from envmedic.model.record import ErrorDocument, error_document
from envmedic.render.style import Style, plain

_STATES = {
    RECOVERABLE: "A transaction was interrupted; `envmedic recover` settles it",
    CHANGED: "The environment was exchanged before this; see `envmedic history`",
}


def error_lines(error: EnvmedicError | ErrorDocument, style: Style) -> list[str]:
    """The whole error, without secrets."""
    error = error_document(error) if isinstance(error, EnvmedicError) else error
    state = _STATES.get(error.environment, "The environment is unchanged")
    return [f"{style('error:', 'bad')} {plain(error.summary)}", *reason_lines(error), f"  {state}"]


def reason_lines(error: EnvmedicError | ErrorDocument) -> list[str]:
    """Details (a list of mistakes, or what a tool printed), cause and next step; nothing is told twice."""
    error = error_document(error) if isinstance(error, EnvmedicError) else error
    cause = (error.cause or "").splitlines()
    details = [line.rstrip() for detail in error.details for line in detail.splitlines() if line.strip()]
    if cause and all(line in details for line in cause) and len(details) > 1:
        cause = []
    details = [line for line in details if _bare(line) not in cause]
    lines = [f"  | {plain(line)}" for line in details]
    lines += [f"  {'cause:' if number == 0 else '      '} {plain(line)}" for number, line in enumerate(cause)]
    return lines + ([f"  hint: {plain(error.hint)}"] if error.hint else [])


def _bare(line: str) -> str:
    """A line of a tool's output without the tool's own word for it."""
    return line.strip().removeprefix("cause:").strip()


def bug(error: BaseException, *, environment: str) -> InternalError:
    """The error that tells of a bug of envmedic, with what is needed to mend it."""
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
