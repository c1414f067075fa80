"""A part of the work in a fork of this process, on another core: it has all that is loaded and read here."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")
_CORES = 2
_CHUNK_BYTES = 1 << 20
_PR_SET_PDEATHSIG = 1
_RAISING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


@contextmanager
def uninterrupted() -> Iterator[set[int]]:
    """Let the signals that end a command wait while this process forks; gives the mask, which the child puts back.

    Around a fork Python calls what modules registered for it: logging takes its lock before and gives it back after.
    What a signal raises within is swallowed there, and the lock is kept for ever.
    """
    mask = {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _RAISING)
        yield mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def beside(work: Callable[[], T], rest: Callable[[], U]) -> tuple[T, U]:
    """Run `work` in a fork while `rest` runs here, and return what both return.

    The fork's value comes back pickled. Whatever goes wrong in the fork is of no consequence: `work` then runs here
    and raises what it raises. Nothing is forked where other threads run, whose locks the fork would find held for
    ever, nor on a machine with one core.
    """
    if len(os.sched_getaffinity(0)) < _CORES or threading.active_count() > 1:
        return work(), rest()
    fork = _Fork()
    try:
        try:
            fork.begin(work)
        except OSError:  # no process or no descriptor to be had
            return work(), rest()
        other = rest()
        told = fork.told()
        return pickle.loads(told) if told else work(), other  # noqa: S301  # by a fork of this very process
    finally:
        fork.close()


class _Fork:
    """A fork of this process that writes one answer into a pipe."""

    def __init__(self) -> None:
        self._pid = 0
        self._pipe = -1

    def begin(self, work: Callable[[], object]) -> None:
        """Fork, and let the child answer with what `work` returns. Raises OSError."""
        self._pipe, writing = os.pipe()
        parent = os.getpid()
        with uninterrupted() as mask:
            try:
                self._pid = os.fork()
                if self._pid == 0:
                    _answer(parent, writing, work, mask)
            finally:
                os.close(writing)

    def told(self) -> bytes:
        """Wait for its end; what it has written if it ended well, else nothing."""
        parts: list[bytes] = []
        while part := os.read(self._pipe, _CHUNK_BYTES):
            parts.append(part)
        return b"".join(parts) if self._ended() == 0 else b""

    def _ended(self) -> int:
        """Wait for the child, whose number is no longer ours then; returns its status."""
        pid, self._pid = self._pid, 0
        return os.waitpid(pid, 0)[1]

    def close(self) -> None:
        """Kill the child if it was not waited for."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self._ended()
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1


def _answer(parent: int, pipe: int, work: Callable[[], object], mask: set[int]) -> None:
    """Write what `work` returns and end this process at once: what its parent would do at its end is not for it."""
    status = 1
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it has ended already
            return
        left = memoryview(pickle.dumps(work(), pickle.HIGHEST_PROTOCOL))
        while left:
            left = left[os.write(pipe, left) :]
        status = 0
    finally:
        os._exit(status)
