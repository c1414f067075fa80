"""Cancellable work: it runs in a thread that its caller can abandon at any time, such as a stalled download."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Final, TypeVar

from envmedic.errors import OutOfMemory

T = TypeVar("T")
TICK_S: Final = 0.1
"""Seconds between two calls of `tick`."""


class Hold:
    """Lock of the work around every change that it makes; after the caller left, it raises instead."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = False

    def __enter__(self) -> None:
        """Begin a change. Raises LeftError after `leave`."""
        self._lock.acquire()
        if self._left:
            self._lock.release()
            raise LeftError

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the change."""
        self._lock.release()

    def leave(self) -> None:
        """Forbid further changes, after the one in progress has ended."""
        with self._lock:
            self._left = True


class LeftError(Exception):
    """The caller has abandoned the work."""


def beside(work: Callable[[], T], tick: Callable[[], object], hold: Hold) -> T:
    """The result of `work`, which runs in a separate thread. Raises its errors, and OutOfMemory if no thread starts.

    `tick` is called ten times a second meanwhile. An exception from it ends the wait at once, even while the work
    hangs: the thread is abandoned, and `hold` keeps it from further changes.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001  # raised again by outcome.result()
            outcome.set_exception(error)

    try:
        # A daemon and no ThreadPoolExecutor: the executor joins its threads when Python exits, and would wait for a
        # server that never answers.
        threading.Thread(target=run, name="beside", daemon=True).start()
    except RuntimeError as error:
        raise OutOfMemory from error
    try:
        while not wait([outcome], TICK_S).done:
            tick()
    finally:
        # Also after success: the work has no change left to make.
        hold.leave()
    return outcome.result()
