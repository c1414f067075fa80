"""What guards call that tell that they run, in whatever process they stand; nothing else is imported into those."""

from __future__ import annotations

import os
from collections.abc import Callable

# under names of their own: tests put others in their place
from posix import close as _close
from posix import open as _open
from posix import read as _read
from posix import write as _write
from typing import TypeVar

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120  # no pathlib
T = TypeVar("T")
TRIPPED = "!"
SEEN, TESTS, NOW = "guards-seen", "guards-tests", "guards-now"
"""Files of a copy: guards and the tests that pass them, what came of each test, and the one that is under way."""
_told: set[tuple[int, str, str]] = set()


def seen(number: int, how: str = "") -> None:
    """Tell once for each test and process that a guard runs. Returns None: an expression stays what it is."""
    test = os.environ.get("PYTEST_CURRENT_TEST") or _now()
    if (number, how, test) not in _told:
        _told.add((number, how, test))
        append(SEEN, f"{number}{how} {test}\n")


def true(number: int, value: T) -> T:
    """Tell that a comparison runs, and where it is true; returns its value."""
    seen(number)
    if value:
        seen(number, TRIPPED)
    return value


def raising(number: int, call: Callable[[], T]) -> T:
    """Make a call that only refuses; tell that it runs, and where it does refuse."""
    seen(number)
    try:
        return call()
    except BaseException:
        seen(number, TRIPPED)
        raise


def append(name: str, line: str) -> None:
    """Add a line to a file of the copy, where this process still can."""
    try:
        descriptor = _open(f"{_ROOT}/{name}", os.O_WRONLY | os.O_APPEND)
    except OSError:  # no descriptor left, or hidden in this test
        return
    try:
        _write(descriptor, line.encode())
    except OSError:  # a limit on the size of files
        return
    finally:
        _close(descriptor)


def _now() -> str:
    """For processes that get none of the variables of pytest."""
    try:
        descriptor = _open(f"{_ROOT}/{NOW}", os.O_RDONLY)
    except OSError:
        return ""
    try:
        return _read(descriptor, 4096).decode()
    finally:
        _close(descriptor)
