"""A command that is ended when somebody who cannot interrupt the thread asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_S = 0.2
"""How often `cancel` is asked."""


@contextmanager
def cancelling(cancel: Callable[[], bool] | None, kill: Callable[[], object]) -> Iterator[None]:
    """Meanwhile, `kill` as soon as `cancel` says so; None never does."""
    if cancel is None:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(POLL_S):
            if cancel():
                kill()
                return

    watcher = threading.Thread(target=watch, name="cancel", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
