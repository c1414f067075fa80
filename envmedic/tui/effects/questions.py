"""Questions that work in a thread has for the person at the screen."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from envmedic.render.text import Line

_TICK_S = 0.1
"""Seconds between two looks at the cancellation."""


class Asker(Protocol):
    """The App as questions need it."""

    def later(self, call: Callable[[], object]) -> None:
        """Do something on the App's thread; may be called from any."""

    def ask(self, title: str, lines: Sequence[Line], then: Callable[[bool], None]) -> None:
        """Ask on the screen; on the App's thread."""


def asked(front: Asker, cancelled: Callable[[], bool], title: str, lines: Sequence[Line]) -> bool:
    """Ask from a thread of a job, and wait for the answer. Once the job is cancelled it is no."""
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
    front.later(lambda: front.ask(title, lines, answers.put))
    # polled, since waiting on the queue would not notice the cancellation
    while answers.empty() and not cancelled():
        time.sleep(_TICK_S)
    return not answers.empty() and answers.get()
