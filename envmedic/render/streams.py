"""The standard streams: whether they take colour, and writes that outlive their reader."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in typing, which takes longer to load than a help text may
if TYPE_CHECKING:
    from typing import TextIO


def write(stream: TextIO, text: str) -> None:
    """Write `text` to `stream` at once. After its reader has gone (``| head``), discard it and all later text."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        discard(stream)


def discard(stream: TextIO) -> None:
    """Send everything still buffered for `stream`, and all later text, to the null device.

    Closing the stream would not do: Python flushes the standard streams once more at exit, and a failure there changes
    the exit code.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def wants_colour(stream: TextIO, choice: str = "auto") -> bool:
    """Whether to colour `stream`; NO_COLOR, FORCE_COLOR, TERM and whether it is a terminal decide, in this order."""
    if choice != "auto":
        return choice == "always"
    # https://no-color.org: any value but the empty one
    if os.environ.get("NO_COLOR"):
        return False
    # for logs of CI and for `less -R`, where stdout is no terminal
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM", "") not in {"", "dumb", "unknown"} and stream.isatty()
