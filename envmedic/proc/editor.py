"""A program that has the terminal to itself, such as the user's editor."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence


def run_in_terminal(argv: Sequence[str]) -> int:
    """Run `argv` with this process's terminal, and return its exit status, minus the number of a signal that ended it.

    Ctrl-C is the program's own affair meanwhile. Called in the main thread. Raises OSError when it cannot be started.
    """
    former = signal.signal(signal.SIGINT, lambda *_: None)  # a handler, unlike ignoring, is not the program's too
    try:
        return subprocess.run(list(argv), check=False).returncode  # noqa: S603  # the user's own choice
    finally:
        signal.signal(signal.SIGINT, former)
