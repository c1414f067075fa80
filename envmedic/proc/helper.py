"""Python programs of envmedic's own that run in a process of their own and answer in JSON lines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from envmedic.model.ports import OnLine
from envmedic.proc.child import Child, deferred_signals
from envmedic.proc.output import Lines, Tail

HELPER_GRACE_S = 5.0
"""How long a helper has to kill its command before it is killed itself."""


class HelperResult(NamedTuple):
    """What a helper left."""

    stdout: str
    stderr: str
    status: tuple[bytes, ...]
    """Whole lines that the helper wrote about itself."""
    returncode: int
    """Of the helper itself; that of its command is in `status`."""
    timed_out: bool


class Helper:
    """A program of this interpreter that gets `request` on standard input and answers on a pipe.

    `program` is what follows the interpreter's name on the command line; the number of the pipe's descriptor comes
    last. `inherit` are descriptors that it and its commands keep open, such as the journal's lock. After `timeout_s`
    seconds it is stopped. Made without effect: call `start` and `finish` inside ``with closing(…)`` and in the same
    thread, since a helper may ask the kernel to end it with the thread that started it.
    """

    def __init__(
        self, program: Sequence[str], request: bytes, *, inherit: Sequence[int] = (), timeout_s: float | None = None
    ) -> None:
        self._program = tuple(program)
        self._request = request
        self._inherit = tuple(inherit)
        self._timeout_s = timeout_s
        self._child: Child | None = None
        self._status: int | None = None

    def start(self) -> None:
        """Start it and hand it the request. Raises OSError when it cannot be started."""
        with deferred_signals():  # until all that has to be closed and ended is known
            self._status, theirs = os.pipe()
            try:
                self._child = Child(
                    [sys.executable, *self._program, str(theirs)],
                    stdin=subprocess.PIPE,
                    pass_fds=(theirs, *self._inherit),
                    limit_s=self._timeout_s,
                    grace_s=HELPER_GRACE_S,
                )
                self._child.start()
            finally:
                os.close(theirs)
        self._child.write(self._request)

    def finish(self, *, on_line: OnLine | None = None, poll: Callable[[], object] | None = None) -> HelperResult:
        """Pass the lines that its command prints on until it ends.

        `poll` is called several times a second, however silent the command. What is raised meanwhile (an interrupt, an
        error of `on_line` or `poll`) ends all of it.
        """
        assert self._child is not None  # noqa: S101  # started
        assert self._status is not None  # noqa: S101
        out, err = Lines(Tail(on_line)), Lines(Tail(on_line))
        status = bytearray()
        timed_out = self._child.listen(out.feed, err.feed, also={self._status: status.extend}, poll=poll)
        *lines, _cut_off = bytes(status).split(b"\n")  # by a death in the middle of it
        with deferred_signals():
            returncode = self._child.reap()
            self.close()
        return HelperResult(out.text(), err.text(), tuple(lines), returncode, timed_out)

    def close(self) -> None:
        """End it, first so that it can kill its command, then by force, and close all pipes."""
        try:
            if self._child is not None:
                self._child.close()
        finally:
            if self._status is not None:
                os.close(self._status)
                self._status = None
