"""Writes to the standard streams that outlive their reader."""

from __future__ import annotations

import os
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
