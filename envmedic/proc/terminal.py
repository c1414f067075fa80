"""Terminals: a pseudo terminal for a command, and the user's own in raw mode meanwhile."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
import tty
from collections.abc import Iterator

_SIZE = struct.Struct("HHHH")
_LOCAL, _CHARACTERS = 3, 6
"""Indexes in what ``tcgetattr`` returns."""


def is_terminal(descriptor: int) -> bool:
    """Whether it is an open terminal."""
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def in_foreground(descriptor: int) -> bool:
    """Whether this process may read the terminal `descriptor` and change its settings."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False


def like(descriptor: int, *, plain: bool) -> tuple[int, int]:
    """A new pseudo terminal as (our end, the command's end), as wide as `descriptor`.

    With `plain` it changes nothing in what is written to it; else it has the settings of `descriptor`.
    """
    ours, theirs = os.openpty()
    with contextlib.suppress(termios.error):  # a terminal that tells nothing keeps the defaults
        settings = termios.tcgetattr(theirs if plain else descriptor)
        if plain:
            settings[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
    copy_size(descriptor, ours)
    return ours, theirs


def copy_size(source: int, target: int) -> None:
    """Give `target` the number of rows and columns of `source`."""
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(_SIZE.size))
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def take(descriptor: int) -> None:
    """In a new session: make the terminal the one that controls it."""
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)


def suspends(data: bytes, ours: int) -> bool:
    """Whether `data`, typed for the pseudo terminal, holds the key that suspends (Ctrl-Z), and that key is in force."""
    try:
        settings = termios.tcgetattr(ours)
    except termios.error:
        return False
    key = settings[_CHARACTERS][termios.VSUSP]
    return bool(settings[_LOCAL] & termios.ISIG) and isinstance(key, bytes) and key != b"\0" and key in data


class Raw:
    """The user's terminal: every key is passed on as it is."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before = termios.tcgetattr(descriptor)

    @contextlib.contextmanager
    def mode(self) -> Iterator[None]:
        """Raw until the end of the block."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Become raw."""
        tty.setraw(self._descriptor, termios.TCSADRAIN)

    def leave(self) -> None:
        """Become as it was."""
        with contextlib.suppress(termios.error):  # it may have gone
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)
