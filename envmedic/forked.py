"""A part of the work in a fork of this process, on another core: it has all that is loaded and read here."""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")
_CORES = 2
_CHUNK_BYTES = 1 << 20
_SIZE_BYTES = 8
_LEAST_WAIT_S = 60.0
_WAIT_FACTOR = 10
"""A fork that takes so many times as long as the work beside it hangs."""
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

    The fork's value comes back pickled. Whatever goes wrong in the fork is of no consequence, also that it hangs: `work`
    then runs here and raises what it raises. Nothing is forked where other threads run, whose locks the fork would find
    held for ever, nor on a machine with one core.
    """
    if len(os.sched_getaffinity(0)) < _CORES or not _single_threaded():
        return work(), rest()
    fork = _Fork()
    try:
        try:
            fork.begin(work)
        except OSError:  # no process or no descriptor to be had
            return work(), rest()
        begun = time.monotonic()
        other = rest()
        answer = fork.answer(max(_LEAST_WAIT_S, _WAIT_FACTOR * (time.monotonic() - begun)))
        return pickle.loads(answer) if answer else work(), other  # noqa: S301  # by a fork of this very process
    finally:
        fork.close()


def _single_threaded() -> bool:
    """Whether this process has one thread, counting those that libraries start without Python's knowledge."""
    try:
        return len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:  # no /proc: nothing can be said
        return False


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

    def answer(self, limit_s: float) -> bytes:
        """Read the answer; empty where the fork ends without a whole one or takes longer than `limit_s` seconds.

        The size that precedes an answer says whether it is whole. The status of the fork would not: where this process
        was started with SIGCHLD ignored, the kernel discards it.
        """
        until, received = time.monotonic() + limit_s, bytearray()
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        while poll.poll(max(0.0, until - time.monotonic()) * 1000):
            part = os.read(self._pipe, _CHUNK_BYTES)
            if not part:
                break
            received += part
        answer = bytes(received[_SIZE_BYTES:])
        return answer if len(answer) == int.from_bytes(received[:_SIZE_BYTES], "little") else b""

    def close(self) -> None:
        """Kill and reap the child."""
        if self._pid:
            pid, self._pid = self._pid, 0
            with suppress(ProcessLookupError, ChildProcessError):  # the kernel has reaped it: SIGCHLD is ignored
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)  # else the number may be another's
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
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
        answer = pickle.dumps(work(), pickle.HIGHEST_PROTOCOL)
        left = memoryview(len(answer).to_bytes(_SIZE_BYTES, "little") + answer)
        while left:
            left = left[os.write(pipe, left) :]
        status = 0
    finally:
        os._exit(status)
