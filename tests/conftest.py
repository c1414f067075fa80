"""What holds for every test."""

from __future__ import annotations

import os
import signal

import pytest

# Started in the background by a shell, or under nohup, everything below would inherit that these are ignored.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real torch is several GB, so its tests run only when they are asked for, and else say why not."""
    if os.environ.get("ENVMEDIC_TEST_REAL") == "1":
        return
    skip = pytest.mark.skip(
        reason="real torch environments of several GB: ENVMEDIC_TEST_REAL=1, as in `make test-real`"
    )
    for item in items:
        if item.get_closest_marker("real_torch"):
            item.add_marker(skip)
