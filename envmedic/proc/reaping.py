"""Processes that were made and of which nobody was told."""

from __future__ import annotations

import contextlib
import os
import traceback


def reap_child_of(error: BaseException) -> None:
    """Take the status of the process that sh had made when `error` was raised, whose number nothing else tells."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        pid = getattr(frame.f_locals.get("self"), "pid", None)
        if isinstance(pid, int):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
