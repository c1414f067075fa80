"""Ctrl-C, SIGTERM and a front end's cancel button during a transaction.

Before the exchange an interruption ends the transaction and the environment is unchanged; from the
exchange on it is noted, and the transaction finishes.
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

    Signals are caught in the main thread only, which is where Python delivers them; a transaction in
    another thread is stopped through `cancel`, a cheap function that is asked often.
    """

    def __init__(self, cancel: Cancel = never) -> None:
        self._cancel = cancel
        self._signal: int | None = None
        self._at_once = 0
        self._committed = False

    @classmethod
    def finishing(cls) -> Interruption:
        """One that never stops anything, for work that must end well or be done again."""
        interruption = cls()
        interruption.shield()
        return interruption

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Catch the signals meanwhile; they get their former handlers back afterwards."""
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
                signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._signal = number
        if self._at_once:
            self.poll()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let a signal break into what is done meanwhile, such as waiting for a command."""
        self.poll()
        self._at_once += 1
        try:
            yield
        finally:
            self._at_once -= 1

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Let no signal break into what is done meanwhile, even inside `at_once`; it counts right after."""
        depth, self._at_once = self._at_once, 0
        try:
            yield
        finally:
            self._at_once = depth
        if depth:
            self.poll()

    @property
    def requested(self) -> bool:
        """Whether somebody asked to stop."""
        return self._signal is not None or self._cancel()

    def poll(self) -> None:
        """Raise `Interrupted` when somebody asked to stop and it is not too late."""
        if self._committed or not self.requested:
            return
        cause = signal.Signals(self._signal).name if self._signal is not None else "cancelled"
        self._committed = True  # cleaning up is not interrupted again
        raise Interrupted("Interrupted", cause=cause)

    def commit(self) -> None:
        """From here on the transaction finishes whatever happens. Raises `Interrupted` for the last time."""
        self.poll()
        self._committed = True

    def shield(self) -> None:
        """From here on nothing is interrupted: the environment is unchanged and only needs cleaning up."""
        self._committed = True

    @property
    def shielded(self) -> bool:
        """Whether it is too late to stop."""
        return self._committed
