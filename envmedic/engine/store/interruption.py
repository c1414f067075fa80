"""Ctrl-C, SIGTERM and the cancel button of a front end during a transaction.

Before the exchange an interruption ends the transaction, and the environment is unchanged. After it the
interruption is only noted, and the transaction finishes.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from envmedic.errors import Interrupted

Cancel = Callable[[], bool]
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def never() -> bool:
    """The cancel token of a caller that has none."""
    return False


class Interruption:
    """Notes requests to stop and raises `Interrupted` where stopping is safe.

    Python delivers signals to the main thread only. A transaction in another thread is stopped by `cancel`, a cheap
    function that is polled often.
    """

    def __init__(self, cancel: Cancel = never) -> None:
        self._cancel = cancel
        self._signal: int | None = None
        self._at_once = 0
        self._committed = False

    @classmethod
    def finishing(cls) -> Interruption:
        """An interruption that never stops anything, for recovery: stopping it would only postpone the same work."""
        interruption = cls()
        interruption.shield()
        return interruption

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Catch SIGINT, SIGTERM and SIGHUP within the block; the former handlers come back afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # What is ignored stays ignored: nohup, and jobs that a shell put in the background.
        former = {number: handler for number in _SIGNALS if (handler := signal.getsignal(number)) != signal.SIG_IGN}
        for number in former:
            signal.signal(number, self._note)
        try:
            yield
        finally:
            for number, handler in former.items():
                # None: the handler was not installed from Python, which cannot name it to put it back
                signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._signal = number
        if self._at_once:  # raising from the handler is what ends a blocking read; elsewhere `poll` decides
            self.poll()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let a signal interrupt the block at once, such as a wait for a command or for an answer."""
        self.poll()
        self._at_once += 1
        try:
            yield
        finally:
            self._at_once -= 1

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Defer signals to the end of the block, even inside `at_once`: for starting and reaping a child."""
        depth, self._at_once = self._at_once, 0
        try:
            yield
        finally:
            self._at_once = depth
        if depth:
            self.poll()

    @property
    def requested(self) -> bool:
        """Whether a signal or `cancel` asked to stop."""
        return self._signal is not None or self._cancel()

    def poll(self) -> None:
        """Raise `Interrupted` if a stop was requested and it is not too late."""
        if self._committed or not self.requested:
            return
        cause = signal.Signals(self._signal).name if self._signal is not None else "cancelled"
        self._committed = True  # cleaning up is not interrupted again
        raise Interrupted("Interrupted", cause=cause)

    def commit(self) -> None:
        """Ignore requests from here on: the transaction finishes. Raises `Interrupted` for the last time."""
        self.poll()
        self._committed = True

    def shield(self) -> None:
        """Ignore requests from here on, for cleaning up; unlike `commit` it raises nothing."""
        self._committed = True

    @property
    def shielded(self) -> bool:
        """Whether it is too late to stop."""
        return self._committed
