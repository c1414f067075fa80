"""Textual's driver for a terminal that may disappear during a repair.

Textual ends when it cannot read, and waits forever when it cannot write. A repair has to end first: the App gets the
news, and further drawing is dropped.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from envmedic.tui.app import EnvmedicApp


@contextmanager
def lent(app: EnvmedicApp) -> Iterator[None]:
    """Lend the terminal to another program for the block. Raises SuspendNotSupported where Textual cannot suspend."""
    loop = asyncio.get_running_loop()
    heeded = loop.remove_signal_handler(signal.SIGINT)  # Ctrl-C belongs to that program
    try:
        with app.suspend():
            yield
    finally:
        if heeded:
            loop.add_signal_handler(signal.SIGINT, app.hung_up)


class Sink:
    """A text file that takes everything, and tells once when nothing arrives any more."""

    def __init__(self, file: TextIO, lost: Callable[[], None]) -> None:
        self._file = file
        self._lost = lost
        self.gone = False
        """Whether a write has failed; all later text is dropped."""

    def write(self, text: str) -> int:
        """Write `text`, or drop it once the terminal is gone."""
        self._try(lambda: self._file.write(text))
        return len(text)

    def flush(self) -> None:
        """Pass on what was written."""
        self._try(self._file.flush)

    def fileno(self) -> int:
        """The file's descriptor."""
        return self._file.fileno()

    def isatty(self) -> bool:
        """Whether the file is a terminal."""
        return self._file.isatty()

    def _try(self, call: Callable[[], object]) -> None:
        if self.gone:
            return
        try:
            call()
        except OSError:
            self.gone = True
            self._lost()


class Terminal(LinuxDriver):
    """Textual's driver, which tells the App when the terminal is gone."""

    def __init__(
        self, app: EnvmedicApp, *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        # Textual writes from a thread of its own, where an exception would be lost.
        self._file = cast("Any", Sink(cast("TextIO", self._file), self._gone))

    def run_input_thread(self) -> None:
        """Read keys; a terminal that cannot be read is gone."""
        try:
            super().run_input_thread()
        except OSError:
            self._gone()

    def _gone(self) -> None:
        app = cast("EnvmedicApp", self._app)
        # called in the input thread, or while something is drawn: the App must act on its own thread
        app.later(app.hung_up)
