"""Supervision of forked children: time limits, captured output, and messages that are read as they come.

A child may crash, hang, print any amount, call ``os._exit`` or leave processes behind; each is a `ChildEnding`.
Children are forked, not started, so that a module imported once in the parent serves all of them.
"""

from __future__ import annotations

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
_READERS = set()
"""Reading ends that this process holds; a child closes them all, those of its siblings too."""
_ATTENDED = []
"""Children whose messages and limits are served while this process waits for others."""


class ChildEnding:
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
        _READERS.add(self.reader)
        os.set_blocking(self.reader, False)
        self.open = True
        self.data = b""
        self._on_line = on_line

    def read(self):
        """Read the available bytes; returns their number, 0 at the end too."""
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

    def close(self):
        """Close the reading end."""
        _READERS.discard(self.reader)
        os.close(self.reader)

    def drain(self):
        """Take what is left, within `DRAINED_OUTPUT`."""
        total = 0
        while total < DRAINED_OUTPUT:
            size = self.read()
            # a process that the child left behind may keep the pipe open, so waiting for its end could take for ever
            if not size:
                return
            total += size


class ChildJob:
    """What a child does: ``work(send)`` within `limit_s` seconds; `on_end` gets its `Ending`."""

    def __init__(self, work, limit_s, on_message, on_end):
        self.work = work
        self.limit_s = limit_s
        self.on_message = on_message
        self.on_end = on_end


class Supervised:
    """One forked child. `on_message` gets each value that the child sends and may change `deadline`."""

    def __init__(self, work, limit_s, on_message):
        self.started = time.monotonic()
        self.deadline = self.started + limit_s
        self._expired_s = None
        self._output = _Pipe()
        self._messages = _Pipe(lambda line: on_message(json.loads(line.decode())))
        # unflushed text would be in the child's buffers as well, and be printed twice
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 and later warn where a library has started threads
            try:
                self.pid = os.fork()
            except OSError:
                for pipe in (self._output, self._messages):
                    os.close(pipe.writer)
                    pipe.close()
                raise
        if self.pid == 0:
            _child(work, parent, self._output, self._messages)
        for pipe in (self._output, self._messages):
            os.close(pipe.writer)

    def wait(self):
        """Wait for the end, or for the time limit; returns the `Ending`."""
        while not self.ended():
            self.press()
            listen([self])
        return self.finish()

    def attend(self):
        """Hear it from now on whenever this process waits for any child, until `finish`."""
        _ATTENDED.append(self)

    def press(self):
        """Enforce the time limit: the child may first print its Python stack, then it is killed."""
        if time.monotonic() < self.deadline:
            return
        if self._expired_s is None:
            self._expired_s = self.deadline - self.started
            self._say(signal.SIGUSR1)
            self.deadline += GRACE_S
        else:
            self._say(signal.SIGKILL)

    def finish(self):
        """What a child that has ended leaves; returns the `Ending`."""
        if self in _ATTENDED:
            _ATTENDED.remove(self)
        for pipe in (self._messages, self._output):
            pipe.drain()
        status = self._reap()
        timed_out = self._expired_s is not None
        return ChildEnding(
            os.WEXITSTATUS(status) if os.WIFEXITED(status) and not timed_out else None,
            signal_name(os.WTERMSIG(status)) if os.WIFSIGNALED(status) and not timed_out else None,
            self._expired_s,
            self._output.data.decode("utf-8", "replace"),
            time.monotonic() - self.started,
        )

    def ended(self):
        """Whether the child has ended; its status is left for `finish`."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def pipes(self):
        """The pipes from which more may come."""
        return [pipe for pipe in (self._messages, self._output) if pipe.open]

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
            pipe.close()
        return os.waitpid(self.pid, 0)[1]


def listen(children):
    """Read the messages and output of `children`; returns at the latest at the next deadline."""
    beside = [child for child in _ATTENDED if child not in children and child.pipes() and not child.ended()]
    for child in beside:
        child.press()
    children = [*children, *beside]
    pipes = {pipe.reader: pipe for child in children for pipe in child.pipes()}
    left = min(child.deadline for child in children) - time.monotonic()
    silent = any(not child.pipes() for child in children)  # only its end can be waited for
    seconds = 0.002 if silent else min(max(left, 0.01), 0.1)
    for reader in select.select(list(pipes), [], [], seconds)[0]:
        pipes[reader].read()


def run(work, limit_s, on_message):
    """Run ``work(send)`` in a child; `on_message` gets what it sends. Returns the `Ending`."""
    return Supervised(work, limit_s, on_message).wait()


def run_all(jobs, at_once, beside=None):
    """Run `jobs` in children, `at_once` of them at a time, or fewer where the system allows no more processes.

    `beside`, an attended child, counts as one of them as long as it runs.
    """
    waiting, running = list(reversed(jobs)), []
    while waiting or running:
        taken = beside is not None and not beside.ended()
        if taken and not running and at_once <= 1:
            listen([beside])
            beside.press()
            continue
        while waiting and len(running) + taken < at_once:
            job = waiting[-1]
            try:
                running.append((Supervised(job.work, job.limit_s, job.on_message), job))
            # a limit of processes or memory is reached; fewer at a time will do
            except OSError:
                if not running:
                    raise
                at_once = len(running) + taken
            else:
                waiting.pop()
        listen([child for child, _ in running])
        for entry in list(running):
            child, job = entry
            if child.ended():
                running.remove(entry)
                job.on_end(child.finish())
            else:
                child.press()


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
        _settle(parent, output)

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
        # not sys.exit: the handlers that libraries registered for the end belong to the parent
        os._exit(status)


def _settle(parent, output):
    """Make the child a session of its own that dies with its parent, with the pipes as its output and no core dumps."""
    # a session of its own makes a process group, by which everything that the check started can be killed
    os.setsid()
    if ctypes is not None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # the parent may have died between fork and prctl, and no signal comes for that
    if os.getppid() != parent:
        os._exit(70)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output.writer, 1), (output.writer, 2)):
        os.dup2(source, target)
    # an inherited reading end would keep a pipe of a sibling open after the parent has closed it
    for descriptor in (null, output.writer, *_READERS):
        os.close(descriptor)
    _READERS.clear()
    _ATTENDED.clear()
    faulthandler.enable(file=2, all_threads=False)
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)


def _write(descriptor, data):
    while data:
        data = data[os.write(descriptor, data) :]
