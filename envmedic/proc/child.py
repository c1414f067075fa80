"""One child process: how it is started, heard, signalled, killed and reaped.

Everything else that starts a process is a door on top of `Child`. Two rules keep it right under signals at any moment:

* Nothing interrupts the start and the reaping (`deferred_signals`). An exception between the fork and the note of the
  process ID would leave a process that nobody knows; one between ``waitpid`` and the note of the status, an ID that may
  be another process's by then.
* A child that has ended is looked at without reaping it (``WNOWAIT``). As long as it is a zombie the kernel gives
  neither
  its process ID nor its group to others, so it is safe to signal both. Reaping comes last.
"""

from __future__ import annotations

import errno
import math
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from envmedic.owner import User

Feed = Callable[[bytes], None]
"""Takes what came on a pipe; nothing at its end."""
LOOK_S = 0.2
"""How often a silent child is looked at, and its caller asked whether to go on."""
_LINGER_S = 0.5
"""How long outputs are read that another process holds open after the child's end."""
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.05
_CHUNK = 1 << 16
"""As much as a pipe holds by default: one read takes what an ended child has left in it."""


class Child:
    """A child process. Made without effect and started inside ``with closing(…)``, after which nothing of it is left.

    It leads a session of its own unless `session` is false, so that a Ctrl-C in the terminal does not reach it and it
    can be killed with its children, which share its process group. It inherits `pass_fds` and no other descriptors, and
    `env` in the place of this process's environment. As root it becomes `user`. After `limit_s` seconds `listen` stops
    it. Stopping is SIGKILL, or SIGTERM to the child alone and SIGKILL `grace_s` seconds later. `prepare` runs in the
    new process before the program does, which is unsafe beside other threads.

    A death signal (PR_SET_PDEATHSIG) follows the thread that called `start`: that thread must outlive the child.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        program: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: User | None = None,
        stdin: int | None = subprocess.DEVNULL,
        stdout: int | None = subprocess.PIPE,
        stderr: int | None = subprocess.PIPE,
        pass_fds: Sequence[int] = (),
        session: bool = True,
        limit_s: float | None = None,
        grace_s: float = 0.0,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self.argv = words = tuple(argv)
        self.started = 0.0
        """When, by the monotonic clock."""
        self.killed = False
        """Whether it was killed from here before it was reaped."""
        self._session = session
        self._limit_s = math.inf if limit_s is None else limit_s
        self._grace_s = grace_s
        self._process: subprocess.Popen[bytes] | None = None
        self._returncode: int | None = None
        """Known since it was reaped."""
        self._popen: Callable[[], subprocess.Popen[bytes]] = lambda: subprocess.Popen(  # noqa: S603  # the words are the caller's
            words,
            executable=program,
            bufsize=0,
            env=env,
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=pass_fds,
            start_new_session=session,
            user=None if user is None else user.uid,
            group=None if user is None else user.gid,
            extra_groups=None if user is None else user.groups,
            preexec_fn=prepare,  # noqa: PLW1509  # see above
        )

    def start(self) -> None:
        """Start it. Raises OSError where it cannot be started."""
        self.started = time.monotonic()
        with deferred_signals():
            try:
                self._process = self._popen()
            except ValueError as error:  # a NUL in a word
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self.argv[0]) from error

    def write(self, request: bytes) -> None:
        """Write all of its standard input, which is a pipe. One that has died shows by its status."""
        pipe = self._running.stdin
        assert pipe is not None  # noqa: S101  # the caller's choice
        with suppress(BrokenPipeError), pipe:
            left = memoryview(request)
            while left:
                left = left[os.write(pipe.fileno(), left) :]

    def listen(
        self, out: Feed, err: Feed, *, also: Mapping[int, Feed] | None = None, poll: Callable[[], object] | None = None
    ) -> bool:
        """Read its outputs, and the pipes `also`, until it has ended; returns whether its limit stopped it.

        `poll` is called several times a second, however silent the child. What `poll` and the feeds raise is raised
        here. `reap` has the status.
        """
        process = self._running
        deadline, stopped, until = self.started + self._limit_s, False, math.inf
        # Of the selectors this one has no descriptor of its own, which an interruption before the block would leave
        # open.
        with selectors.PollSelector() as selector:
            for pipe, feed in ((process.stdout, out), (process.stderr, err), *(also or {}).items()):
                if pipe is not None:
                    selector.register(pipe, selectors.EVENT_READ, feed)
            while (now := time.monotonic()) < until:
                if poll is not None:
                    poll()
                # The end is looked for before the pipes: what the child wrote is then read at least once more, and a
                # child that ended in time has not timed out, however late it is heard.
                if self.ended():
                    until = min(until, now + _LINGER_S)
                elif now >= deadline:
                    deadline = self._stop(again=stopped)
                    stopped = True
                pause = max(0.0, min(LOOK_S, deadline - now, until - now))
                if selector.get_map():
                    _read(selector, pause)
                elif until < math.inf:
                    break
                else:
                    self.wait(pause)
        return stopped

    def _stop(self, *, again: bool) -> float:
        """Stop it; returns when to stop it `again`, then by force."""
        if self._grace_s and not again:
            self.send(signal.SIGTERM)
            return time.monotonic() + self._grace_s
        self.kill()
        return math.inf

    def ended(self) -> bool:
        """Whether it has ended. It keeps its process ID until `reap`."""
        return self._ended(os.WNOHANG)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for its end, at most `timeout_s` seconds; returns whether it has ended."""
        if timeout_s is None:
            return self._ended(0)
        until, pause = time.monotonic() + timeout_s, _SHORTEST_PAUSE_S
        while not self.ended():
            left = until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        return True

    def _ended(self, options: int) -> bool:
        if self._returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self._running.pid, os.WEXITED | os.WNOWAIT | options) is not None
        except ChildProcessError:  # reaped by the kernel: who started envmedic ignores SIGCHLD
            return True

    def reap(self) -> int:
        """Wait for its end and close its pipes; returns its exit status, or minus a signal's number."""
        self.wait()  # can be interrupted
        with deferred_signals():
            if self._returncode is None:
                self._returncode = self._running.wait()
                self._close_pipes()
                self._process = None  # its destructor runs here: an exception in one would be lost, and Ctrl-C with it
        return self._returncode

    def send(self, number: int, *, group: bool = False) -> None:
        """Send it a signal, or with `group` its whole process group. Nothing where it was reaped."""
        if self._returncode is not None:
            return
        process = self._running
        with suppress(ProcessLookupError, ChildProcessError):
            # Raises ChildProcessError where the ID is no longer the child's: see `_ended`.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            (os.killpg if group else os.kill)(process.pid, number)

    def kill(self) -> None:
        """Kill it, and the children in its session with it, also where it has ended before them."""
        self.killed = self.killed or self._returncode is None
        self.send(signal.SIGKILL, group=self._session)

    def close(self) -> None:
        """Stop and reap it, unless it was reaped, and close this process's ends of its pipes."""
        if self._process is None:
            return
        try:
            self._end()
        finally:  # also where it has not died yet, and a second Ctrl-C ends the wait
            with deferred_signals():
                self._close_pipes()

    def _close_pipes(self) -> None:
        process = self._process
        for pipe in (process.stdin, process.stdout, process.stderr) if process is not None else ():
            if pipe is not None:
                pipe.close()

    def _end(self) -> None:
        try:
            if self._grace_s and not self.ended():
                self.send(signal.SIGTERM)
                self.wait(self._grace_s)
        finally:  # an impatient second Ctrl-C cuts the grace short
            self.kill()
            self.reap()

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None  # noqa: S101  # callers have started it
        return self._process


def _read(selector: selectors.BaseSelector, wait_s: float) -> None:
    """Read once from every pipe that has something, and drop those at their end."""
    for key, _ in selector.select(wait_s):
        data = os.read(key.fd, _CHUNK)
        if not data:
            selector.unregister(key.fileobj)
        key.data(data)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Let Python's signal handlers wait until the end of the block, where what they raise is raised.

    Blocking the signals instead would fail twice: the child would inherit the mask, and the kernel would deliver them
    to another thread, upon which Python runs the handler in the main thread all the same. Other threads than that one
    are never interrupted by handlers, and cannot set them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    deferral = _Deferral()
    try:
        deferral.begin()
        yield
    finally:
        deferral.end()


class _Deferral:
    """Stand-ins for the signal handlers of this process.

    Signals that are ignored or end the process stay as they are: Python runs nothing for either, and the child is to
    inherit the former, as under ``nohup``.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
        self._came: list[tuple[int, FrameType | None]] = []
        self._over = False

    def begin(self) -> None:
        for number in range(1, signal.NSIG):
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._stand_in)

    def _stand_in(self, number: int, frame: FrameType | None) -> None:
        if self._over:
            self._handlers[number](number, frame)
        else:
            self._came.append((number, frame))

    def end(self) -> None:
        # From here on a handler may raise between any two lines. So the handlers are put back twice, and a stand-in
        # that stays in place all the same, after a third signal, passes signals on.
        self._over = True
        try:
            self._restore()
        finally:
            self._restore()
        for number, frame in self._came:
            self._handlers[number](number, frame)

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
