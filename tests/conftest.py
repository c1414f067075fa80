"""What holds for every test."""

from __future__ import annotations

import os
import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background by a shell, everything below would inherit that Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
