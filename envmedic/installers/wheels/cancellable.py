"""Work that waits for somebody else, such as a server, in a thread that whoever wants it can leave at any time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Final, TypeVar

from envmedic.errors import OutOfMemory

T = TypeVar("T")
TICK_S: Final = 0.1
"""How often it is told that the work goes on."""


class Hold:
    """Held by the work while it changes something, and refused once nobody waits for it any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = False

    def __enter__(self) -> None:
        """Begin to change something. Raises LeftError where nobody waits."""
        self._lock.acquire()
        if self._left:
            self._lock.release()
            raise LeftError

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """It is changed."""
        self._lock.release()

    def leave(self) -> None:
        """Wait no more; what is being changed is changed to its end."""
        with self._lock:
            self._left = True


class LeftError(Exception):
    """Nobody waits for the work any more."""


def beside(work: Callable[[], T], tick: Callable[[], object], hold: Hold) -> T:
    """The result of `work`, which runs in a thread of its own. Raises what it raises, and OutOfMemory where none starts.

    `tick` is called ten times a second meanwhile. What it raises ends the waiting at once, even where the work hangs:
    the thread is left behind, and changes nothing any more under `hold`.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001  # it is raised where the work is waited for
            outcome.set_exception(error)

    try:
        threading.Thread(target=run, name="beside", daemon=True).start()
    except RuntimeError as error:
        raise OutOfMemory from error
    try:
        while not wait([outcome], TICK_S).done:
            tick()
    finally:
        hold.leave()
    return outcome.result()
