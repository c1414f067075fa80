"""Running a command as its user would, between it and the standard streams of this process.

Where standard input and output are a terminal, the command gets a pseudo terminal of its own, as `script` gives one,
and every key goes there. Else it keeps standard input as it is; of its outputs each that is a terminal is one for the
command too, and each that is not is a pipe, so that it buffers as it would have. Bytes are passed on as they come and
never changed. Outputs that are one file stay one, so that their order is kept.

A command of another user gets no descriptor of a terminal of this process: a program of that user could keep it, and
read there what is typed after the command has ended.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from envmedic.owner import User
from envmedic.proc import terminal
from envmedic.proc.child import Child
from envmedic.proc.output import OutputTail

FORWARDED = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH}
)
QUIET_S = 0.2
"""What a command left running may still print after its end, as long as it pauses no longer than this."""
_TICK_S = 0.05
"""How often signals are looked for; output wakes the loop by itself."""
_CHUNK = 1 << 16
_FROM_KERNEL = 0x80
"""``si_code`` of a signal that a terminal sent: the command got it too, being in the same process group."""
_OUT, _ERR = 1, 2


@dataclass(frozen=True)
class Ending:
    """How a command ended."""

    returncode: int
    """Exit status, or minus the number of the signal that ended it."""
    stopped_by: int | None = None
    """The signal by which somebody asked it to stop, None when nobody did."""


def run_through(
    program: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    output: OutputTail | None = None,
    *,
    user: User | None = None,
    prepare: Callable[[], None] | None = None,
    started: Callable[[], object] | None = None,
) -> Ending:
    """Run the file `program` as `argv` with this process's standard streams; `output` gets what it prints.

    It becomes `user`, in a session of its own, and then calls `prepare`; `started` is called here when it runs. Signals
    to this process are passed on. Raises OSError or SubprocessError when it cannot be started. Called in the main thread.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:
        with contextlib.closing(_Streams(output, foreign=user is not None)) as streams:
            child = Child(
                argv,
                program=program,
                env=env,
                user=user,
                stdin=streams.stdin,
                stdout=streams.targets.get(_OUT),
                stderr=streams.targets.get(_ERR),
                session=streams.has_session,
                prepare=partial(_become, streams, before, prepare),  # no thread runs yet
            )
            with contextlib.closing(child):
                child.start()
                streams.started()
                if started is not None:
                    started()
                return _Run(child, streams).to_its_end()
    finally:
        while signal.sigtimedwait(FORWARDED, 0):
            pass  # came after the command's end
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _become(streams: _Streams, mask: Iterable[int], then: Callable[[], None] | None) -> None:
    """In the new process, before it is the command."""
    if streams.owns_terminal:
        terminal.take(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if then is not None:
        then()


@dataclass
class _Source:
    """A descriptor that output is read from, and where it goes."""

    reader: int
    target: int
    stream: str


class _Streams:
    """The standard streams of the command, and our ends of them."""

    def __init__(self, output: OutputTail | None, *, foreign: bool) -> None:
        self._output = output
        self.sources: list[_Source] = []
        self.targets: dict[int, int] = {}
        """Descriptor of a standard stream → what the command gets for it."""
        self.pty: int | None = None
        """Our end of the pseudo terminal, where there is one."""
        self.model: int | None = None
        """The terminal that it is like."""
        self.owns_terminal = all(map(terminal.is_terminal, (0, _OUT))) and terminal.in_foreground(0)
        self.has_session = self.owns_terminal or foreign
        """Whether the command is in a session of its own, where no key of this terminal signals it."""
        self.stdin = subprocess.DEVNULL if foreign and terminal.is_terminal(0) else None
        self._theirs: set[int] = set()
        self._connect()

    def _connect(self) -> None:
        for descriptor in (_OUT, _ERR):
            if terminal.is_terminal(descriptor):
                self.targets[descriptor] = self._pseudo_terminal(descriptor)
            elif _is_open(descriptor):
                same = descriptor == _ERR and _OUT in self.targets and _same_file(_OUT, _ERR)
                self.targets[descriptor] = self.targets[_OUT] if same else self._pipe(descriptor)
        if self.owns_terminal:
            self.stdin = self.targets[_OUT]

    def _pseudo_terminal(self, descriptor: int) -> int:
        if self.pty is None:
            self.model = 0 if self.owns_terminal else descriptor
            self.pty, theirs = terminal.like(self.model, plain=not self.owns_terminal)
            os.set_blocking(self.pty, False)
            self._theirs.add(theirs)
            self.sources.append(_Source(self.pty, descriptor, "terminal"))
            return theirs
        return next(iter(self.targets.values()))

    def _pipe(self, descriptor: int) -> int:
        reader, writer = os.pipe()
        self._theirs.add(writer)
        self.sources.append(_Source(reader, descriptor, str(descriptor)))
        return writer

    def started(self) -> None:
        """Close the command's ends here, so that its end shows."""
        for descriptor in self._theirs:
            os.close(descriptor)
        self._theirs.clear()

    def pass_on(self, source: _Source) -> bool:
        """Pass on what there is; False when there will be nothing more, or nobody takes it."""
        try:
            data = os.read(source.reader, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:  # EIO: nobody holds the other end of a pseudo terminal
            data = b""
        if not data:
            return False
        if self._output is not None:
            self._output.feed(source.stream, data)
        return write(source.target, data)

    def drop(self, source: _Source) -> None:
        """Close a source: the command gets SIGPIPE as it would have, where it goes on writing."""
        self.sources.remove(source)
        os.close(source.reader)
        if source.reader == self.pty:
            self.pty = None

    def resize(self) -> None:
        """Pass the size of the user's terminal on."""
        if self.pty is not None and self.model is not None:
            terminal.copy_size(self.model, self.pty)

    def close(self) -> None:
        """Close what is open."""
        self.started()
        for source in list(self.sources):
            self.drop(source)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _same_file(one: int, other: int) -> bool:
    """Whether two descriptors lead to one open file, as after ``2>&1``."""
    first, second = os.fstat(one), os.fstat(other)
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def write(descriptor: int, data: bytes) -> bool:
    """Write all of `data`, also where the descriptor does not block; False when nobody reads any more."""
    left = data
    while left:
        written = _write_some(descriptor, left)
        if written is None:
            return False
        left = left[written:]
    return True


def _write_some(descriptor: int, data: bytes) -> int | None:
    """The number of bytes that were taken, after waiting for room; None when nobody reads any more."""
    try:
        return os.write(descriptor, data)
    except BlockingIOError:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_WRITE)
            selector.select()
        return 0
    except OSError:
        return None


@dataclass
class _Run:
    """A command that runs."""

    child: Child
    streams: _Streams
    stopped_by: int | None = None
    raw: terminal.Raw | None = None
    keys: bytes = b""
    """Typed, and not taken by the command yet."""

    def to_its_end(self) -> Ending:
        """Pass everything on until it has ended and has nothing more to say."""
        if not self.streams.owns_terminal:
            self._pump()
        else:
            self.raw = terminal.Raw(0)
            with self.raw.mode():
                self._pump()
        return Ending(self.child.reap(), self.stopped_by)

    def _pump(self) -> None:
        with selectors.DefaultSelector() as selector:
            for source in self.streams.sources:
                selector.register(source.reader, selectors.EVENT_READ, source)
            if self.streams.owns_terminal:
                selector.register(0, selectors.EVENT_READ)
            quiet_since: float | None = None
            while not self._finished(quiet_since):
                busy = self._step(selector)
                if not self.child.ended():
                    quiet_since = None
                elif busy or quiet_since is None:
                    quiet_since = time.monotonic()

    def _finished(self, quiet_since: float | None) -> bool:
        if not self.child.ended():
            return False
        return not self.streams.sources or (quiet_since is not None and time.monotonic() - quiet_since > QUIET_S)

    def _step(self, selector: selectors.BaseSelector) -> bool:
        """One look at all descriptors and signals; whether there was output."""
        self._signals()
        if not self.streams.sources:
            self.child.wait(_TICK_S)
            return False
        ready = selector.select(_TICK_S)
        for key, _ in ready:
            if key.data is None:
                self._typed(selector)
            elif not self.streams.pass_on(key.data):
                selector.unregister(key.fileobj)
                self.streams.drop(key.data)
        self._pass_keys()
        return any(key.data is not None for key, _ in ready)

    def _signals(self) -> None:
        while (info := signal.sigtimedwait(FORWARDED, 0)) is not None:
            number = info.si_signo
            if number == signal.SIGWINCH:
                self.streams.resize()
            else:
                self.stopped_by = number if number in _STOPPING else self.stopped_by
            if info.si_code != _FROM_KERNEL or number == signal.SIGWINCH or self.streams.has_session:
                self.child.send(number)

    def _typed(self, selector: selectors.BaseSelector) -> None:
        """Take keys. In a session of its own nobody could suspend the command, so that is done here."""
        data = os.read(0, _CHUNK)
        pty = self.streams.pty
        if not data or pty is None:
            selector.unregister(0)
        elif terminal.suspends(data, pty):
            self._suspend()
        else:
            self.keys += data

    def _pass_keys(self) -> None:
        """Pass on as many keys as the command has room for: it may print before it reads more."""
        if self.keys and self.streams.pty is not None:
            with contextlib.suppress(OSError):
                self.keys = self.keys[os.write(self.streams.pty, self.keys) :]

    def _suspend(self) -> None:
        assert self.raw is not None  # noqa: S101  # keys are read in this mode only
        self._to_group(signal.SIGSTOP)
        self.raw.leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self.raw.enter()
        self.streams.resize()
        self._to_group(signal.SIGCONT)

    def _to_group(self, number: int) -> None:
        with contextlib.suppress(PermissionError):
            self.child.send(number, group=True)


_STOPPING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
