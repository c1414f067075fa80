"""Running a function in a forked child: with a time limit, its output captured, its messages read as they come.

A child may crash, hang, print any amount, call ``os._exit`` or leave processes behind; each is an `Ending`.
Children are forked, not started anew, so that a module imported once in the parent serves all of them.
"""

from __future__ import annotations

# ruff: noqa: BLE001  # whatever a child raises ends the child
import contextlib
import faulthandler
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
import warnings

try:
    import ctypes
except ImportError:  # a Python built without libffi: its children may outlive a killed parent
    ctypes = None

KEPT_OUTPUT = 64 * 1024
"""Bytes of a child's output that are kept: the last ones."""
DRAINED_OUTPUT = 4 * 1024 * 1024
"""Bytes read at most after the child's end; a process that it left behind could write for ever."""
GRACE_S = 0.5
"""Time for a child that ran past its limit to print its Python stack."""
_PR_SET_PDEATHSIG = 1


class Ending:
    """How a child ended: exactly one of `exit_status`, `signal_name` and `timed_out` tells."""

    def __init__(self, exit_status, signal_name, limit_s, output, seconds):
        self.exit_status = exit_status
        self.signal_name = signal_name
        self.timed_out = limit_s is not None
        self.limit_s = limit_s
        self.output = output
        self.seconds = seconds


class _Pipe:
    """The reading end of a pipe: keeps the last bytes, or hands over whole lines."""

    def __init__(self, on_line=None):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.open = True
        self.data = b""
        self._on_line = on_line

    def read(self):
        """Take what is there; returns the number of bytes, 0 when there is nothing now or never again."""
        try:
            chunk = os.read(self.reader, 65536)
        except BlockingIOError:
            return 0
        self.open = bool(chunk)
        self.data += chunk
        if self._on_line is None:
            self.data = self.data[-KEPT_OUTPUT:]
        else:
            *lines, self.data = self.data.split(b"\n")
            for line in lines:
                self._on_line(line)
        return len(chunk)

    def drain(self):
        """Take what is left, within `DRAINED_OUTPUT`."""
        total = 0
        while total < DRAINED_OUTPUT:
            size = self.read()
            if not size:
                return
            total += size


class Supervised:
    """One forked child. `on_message` gets each value that the child sends and may change `deadline`."""

    def __init__(self, work, limit_s, on_message):
        self.started = time.monotonic()
        self.deadline = self.started + limit_s
        self._output = _Pipe()
        self._messages = _Pipe(lambda line: on_message(json.loads(line.decode())))
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 and later warn where a library has started threads
            self.pid = os.fork()
        if self.pid == 0:
            _child(work, parent, self._output, self._messages)
        for pipe in (self._output, self._messages):
            os.close(pipe.writer)

    def wait(self):
        """Wait for the end, or for the time limit; returns the `Ending`."""
        timed_out, limit_s = False, None
        while not self._ended():
            left = self.deadline - time.monotonic()
            if left <= 0 and not timed_out:
                timed_out, limit_s = True, self.deadline - self.started
                self._say(signal.SIGUSR1)
                self.deadline += GRACE_S
            elif left <= 0:
                self._say(signal.SIGKILL)
            self._listen(min(max(left, 0.01), 0.1))
        for pipe in (self._messages, self._output):
            pipe.drain()
        status = self._reap()
        return Ending(
            os.WEXITSTATUS(status) if os.WIFEXITED(status) and not timed_out else None,
            signal_name(os.WTERMSIG(status)) if os.WIFSIGNALED(status) and not timed_out else None,
            limit_s,
            self._output.data.decode("utf-8", "replace"),
            time.monotonic() - self.started,
        )

    def _ended(self):
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _listen(self, seconds):
        pipes = {pipe.reader: pipe for pipe in (self._messages, self._output) if pipe.open}
        if not pipes:
            time.sleep(min(seconds, 0.002))
            return
        for reader in select.select(list(pipes), [], [], seconds)[0]:
            pipes[reader].read()

    def _say(self, number):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return  # it ended in between, and the next look finds that

    def _reap(self):
        """Kill what the child left in its process group, then take its status: until then the group's id is its own."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing but the dead child may be left
            os.killpg(self.pid, signal.SIGKILL)
        for pipe in (self._output, self._messages):
            os.close(pipe.reader)
        return os.waitpid(self.pid, 0)[1]


def run(work, limit_s, on_message):
    """Run ``work(send)`` in a child; `on_message` gets what it sends. Returns the `Ending`."""
    return Supervised(work, limit_s, on_message).wait()


def now():
    """The clock of `Supervised.deadline`."""
    return time.monotonic()


def signal_name(number):
    """Name of a signal, such as ``SIGSEGV``; real-time signals have numbers only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def _child(work, parent, output, messages):
    """The child's whole life. It never returns, and never runs the parent's handlers at exit."""
    status = 70
    try:
        _settle(parent, output, messages)

        def send(message):
            _write(messages.writer, json.dumps(message).encode() + b"\n")

        work(send)
        status = 0
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        with contextlib.suppress(Exception):  # a package may have replaced them by what cannot be flushed
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _settle(parent, output, messages):
    """Make the child a session of its own that dies with its parent, with the pipes as its output and no core dumps."""
    os.setsid()
    if ctypes is not None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(70)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output.writer, 1), (output.writer, 2)):
        os.dup2(source, target)
    for descriptor in (null, output.writer, output.reader, messages.reader):
        os.close(descriptor)
    faulthandler.enable(file=2, all_threads=False)
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)


def _write(descriptor, data):
    while data:
        data = data[os.write(descriptor, data) :]
