"""Errors as text: what happened, the likely cause, one next step, and what became of the environment."""

from __future__ import annotations

from envmedic.cli.render.style import Style, plain
from envmedic.errors import CHANGED, RECOVERABLE, EnvmedicError
from envmedic.model.record import ErrorDocument

_STATES = {
    RECOVERABLE: "A transaction was interrupted; `envmedic recover` settles it",
    CHANGED: "The environment was exchanged before this; see `envmedic history`",
}


def error_lines(error: EnvmedicError | ErrorDocument, style: Style) -> list[str]:
    """The whole error."""
    state = _STATES.get(error.environment, "The environment is unchanged")
    return [f"{style('error:', 'bad')} {plain(error.summary)}", *reason_lines(error), f"  {state}"]


def reason_lines(error: EnvmedicError | ErrorDocument) -> list[str]:
    """Details, cause and next step; a cause that the details hold too is told once."""
    details = [line for detail in error.details for line in detail.splitlines()]
    cause = (error.cause or "").splitlines()
    if cause and cause == details:
        details = []
    elif cause and all(line in details for line in cause):
        cause = []
    lines = [f"  {plain(line)}" for line in details]
    lines += [f"  {'cause:' if number == 0 else '      '} {plain(line)}" for number, line in enumerate(cause)]
    return lines + ([f"  hint: {plain(error.hint)}"] if error.hint else [])
