"""What an undo looks at, begun while the rest of it is loaded."""

from __future__ import annotations

import os
from pathlib import Path

from envmedic.ahead import Ahead
from envmedic.engine.generations import undo_losses
from envmedic.errors import EnvmedicError


def begin(ahead: Ahead, prefix: str) -> None:
    """Begin to compare both trees that an undo of the environment at `prefix` exchanges with what they were.

    Nothing is begun where nothing can be undone; what is wrong there is for the undo to say.
    """
    try:
        undo_losses.begin(ahead, Path(os.path.realpath(os.path.expanduser(prefix))))  # noqa: PTH111  # as `targets` does
    except (OSError, EnvmedicError):
        ahead.close()
