"""The guard against tests that hang, a plugin of pytest: it reports every process of the test before it fails it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

import pytest
from pytest_timeout import Settings

from tests.support import stacks


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Settings) -> bool | None:
    """Have the clock of pytest-timeout lead here; None leaves it to its own ways where there are no signals."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None

    def strike(_number: int, _frame: FrameType | None) -> None:
        __tracebackhide__ = True
        sys.stderr.write(stacks.report(os.getpid()))
        pytest.fail(f"the test hangs: it did not end within {settings.timeout:.0f} s")

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel  # type: ignore[attr-defined]  # where pytest-timeout looks for it
    signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True
