"""The last line of a terminal while something runs: what is waited for, with a spinner, and a bar where a size is known."""

from __future__ import annotations

import itertools
import shutil
import threading
import time
from typing import Final, TextIO

from envmedic.render.streams import write
from envmedic.render.style import duration, size

TICK_S: Final = 0.1
"""Seconds between two frames of the spinner."""
_LONG_S: Final = 2.0
"""From then on the seconds are counted."""
_BAR: Final = 14
_FRAMES, _ASCII_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
_NARROWEST: Final = 20


class LiveLine:
    """A line that is written over by the next one. `ticks` lets the spinner turn by itself while nothing is reported."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._unicode = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
        self._frames = itertools.cycle(_FRAMES if self._unicode else _ASCII_FRAMES)
        self._text = ""
        self._began = 0.0
        self._drawn = False
        self._lock = threading.Lock()
        self._ended: threading.Event | None = None
        self._ticker: threading.Thread | None = None

    def show(self, text: str, *, began: float, ticks: bool = False) -> None:
        """Show `text`; `began` is when what it names began, on the monotonic clock."""
        with self._lock:
            self._text, self._began = text, began
            self._draw()
        if ticks and self._ticker is None:
            self._ended = threading.Event()
            self._ticker = threading.Thread(target=self._turn, args=(self._ended,), daemon=True)
            self._ticker.start()

    def clear(self) -> None:
        """Leave a fresh line, and no thread: code that forks comes next, perhaps."""
        if self._ticker is not None and self._ended is not None:
            self._ended.set()
            self._ticker.join()
            self._ticker = None
        with self._lock:
            self._wipe()

    def _turn(self, ended: threading.Event) -> None:
        while not ended.wait(TICK_S):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        self._wipe()
        seconds = time.monotonic() - self._began
        waited = f"  {duration(seconds)}" if seconds >= _LONG_S else ""
        # asked each time, since terminals are resized; one column less, since a wrapped line cannot be cleared
        room = max(shutil.get_terminal_size().columns - 1, _NARROWEST)
        text = f"{next(self._frames)} {self._text}"
        write(self._stream, text[:room] + (waited if len(text) + len(waited) <= room else ""))
        self._drawn = True

    def _wipe(self) -> None:
        if self._drawn:
            write(self._stream, "\r\x1b[K")
            self._drawn = False


def bar(done: int, total: int) -> str:
    """A bar for a part of a whole."""
    full = _BAR * min(done, total) // total if total else 0
    return "━" * full + ("╸" if full < _BAR else "") + "─" * (_BAR - full - 1)


def amount_and_pace(done: int, total: int, seconds: float) -> str:
    """``12.0 MB of 80.0 MB, 5.0 MB/s, 14 s left``."""
    told = f"{size(done)} of {size(total)}"
    if seconds <= 0 or not done:
        return told
    pace = done / seconds
    left = f", {duration((total - done) / pace)} left" if done < total else ""
    return f"{told}, {size(round(pace))}/s{left}"
