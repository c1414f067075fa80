"""A part of the work in a fork of this process, on another core: it begins with all that is loaded and read here."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")
_CHUNK_BYTES = 1 << 20
_PR_SET_PDEATHSIG = 1
_TURN_BYTES = 2
_MOST_TURNS = 10_000
"""Far less than a pipe holds, so that filling it never waits."""
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


class Forked(Generic[T]):
    """`work`, begun in a fork where there is a core for one; `close` it, whether or not it was waited for.

    What it returns is pickled on its way here. Whatever goes wrong in the fork is of no consequence: `value`
    then does the work here, and raises what it raises. Nothing is forked where other threads run, whose
    locks the fork would find held for ever, nor on a machine with less than `cores`.
    """

    def __init__(self, work: Callable[[], T], *, cores: int = 2) -> None:
        self._work = work
        self._pid = 0
        self._pipe = -1
        if len(os.sched_getaffinity(0)) >= cores and threading.active_count() == 1:
            try:
                self._fork()
            except OSError:  # no process or no descriptor to be had
                self.close()
            except BaseException:  # an interruption that has waited
                self.close()
                raise

    def _fork(self) -> None:
        reading, writing = os.pipe()
        parent = os.getpid()
        self._pipe = reading
        with uninterrupted() as mask:
            try:
                self._pid = os.fork()
                if self._pid == 0:
                    _answer(parent, writing, self._work, mask)
            finally:
                os.close(writing)

    def value(self) -> T:
        """Wait for what `work` returns; once."""
        told = self._told()
        if not told:
            return self._work()
        import pickle  # noqa: PLC0415  # while the fork works; loading it first would delay that

        answer: T = pickle.loads(told)  # noqa: S301  # by a fork of this very process
        return answer

    def _told(self) -> bytes:
        """What the fork has written before it ended well; nothing otherwise."""
        if not self._pid:
            return b""
        parts: list[bytes] = []
        while part := os.read(self._pipe, _CHUNK_BYTES):
            parts.append(part)
        return b"".join(parts) if self._ended() == 0 else b""

    def _ended(self) -> int:
        """Wait for the fork, whose number is no longer ours then; returns its status."""
        pid, self._pid = self._pid, 0
        return os.waitpid(pid, 0)[1]

    def close(self) -> None:
        """End the fork if it was not waited for."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self._ended()
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1


def each(work: Callable[[int], T], count: int, *, most: int) -> list[T]:
    """What `work` returns for 0 up to `count`, in that order, with the help of forks: at most so many processes in all.

    Whoever is done takes the next number, since nobody knows how long each takes. What a fork took and did not
    answer is done here.
    """
    turns = min(count, _MOST_TURNS)
    reading, writing = os.pipe()
    with closing(os.fdopen(reading, "rb", buffering=0)) as queue:
        with closing(os.fdopen(writing, "wb", buffering=0)) as filled:
            filled.write(b"".join(turn.to_bytes(_TURN_BYTES, "little") for turn in range(turns)))

        def share() -> dict[int, T]:
            found = {}
            while turn := queue.read(_TURN_BYTES):
                found.update({number: work(number) for number in range(int.from_bytes(turn, "little"), count, turns)})
            return found

        with ExitStack() as stack:
            helpers = min(most, turns, len(os.sched_getaffinity(0))) - 1
            forks = [stack.enter_context(closing(Forked(share))) for _ in range(helpers)]
            found = share()
            for fork in forks:
                found.update(fork.value())
    return [found[number] if number in found else work(number) for number in range(count)]


def _answer(parent: int, pipe: int, work: Callable[[], object], mask: set[int]) -> None:
    """Write what `work` returns and end this process at once: what its parent would do at its end is not for it."""
    status = 1
    try:
        import ctypes  # noqa: PLC0415  # in the fork, on its own core
        import pickle  # noqa: PLC0415

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
