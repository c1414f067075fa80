"""Running commands. The only module that imports sh or starts a process.

`run` is for the commands that envmedic itself needs; short questions go by `question.ask`, without sh.
Commands of a transaction go through the staging helper, which `subprocess` must start: sh forks,
and the mount namespace wants a single-threaded process of its own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from envmedic.forked import uninterrupted
from envmedic.model.ports import CommandResult, OnLine
from envmedic.owner import User
from envmedic.proc.cancelling import cancelling
from envmedic.proc.lines import Lines, Tail
from envmedic.proc.reaping import reap_child_of
from envmedic.redact import is_secret

if TYPE_CHECKING:
    from sh import RunningCommand

Feed = Callable[[bytes], None]
POLL_S = 0.2
"""How often a caller that waits is asked whether to go on."""
HELPER_GRACE_S = 5.0
"""How long a staging helper has to kill its command before it is killed itself."""
_LAST_STANDARD = 2
"""Number of standard error."""
_ANY = tuple(range(-signal.NSIG, 256))
"""Every exit status and every signal: how a command ends is a result."""


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: str | None = None,
    on_line: OnLine | None = None,
    timeout_s: float | None = None,
    user: User | None = None,
    cancel: Callable[[], bool] | None = None,
) -> CommandResult:
    """Run `argv` without a terminal or standard input, and return how it ended.

    `argv[0]` is an absolute path. As root it runs as `user`, where one is given. `env` is laid over this process's
    environment; None unsets a name. `on_line` gets each line of both streams as it comes, in another thread; what it
    raises is raised here. A non-zero exit, a signal and a timeout are results. On a timeout, once `cancel` says so, and
    when an exception such as KeyboardInterrupt breaks in, the program and the children in its session are killed first.
    Raises OSError when the program cannot be started, for whatever reason the kernel or `cwd` gives.
    """
    started = time.monotonic()
    child = _Child(argv, overlay(env, user), cwd, user)
    out, err = Tail(on_line), Tail(on_line)
    command = None
    try:
        command = _launch(child, argv, child.guarded(out), child.guarded(err))
        with cancelling(cancel, child.kill):
            returncode = _wait(command, child, timeout_s)
    except _NeverBegunError:
        returncode = -signal.SIGKILL
    except BaseException:  # wherever it breaks in, between these lines too
        child.abandon(command)
        raise
    child.check()
    return CommandResult(
        argv=tuple(argv),
        returncode=returncode,
        stdout=out.text(),
        stderr=err.text(),
        seconds=time.monotonic() - started,
        timed_out=child.killed and returncode == -signal.SIGKILL,
    )


class _NeverBegunError(Exception):
    """A command's process was killed before it could say anything."""


class _Child:
    """A command's process, from the fork on; it leads a session, so that it and its children can be killed together.

    sh tells of a program that the kernel refuses by a text, and leaves its process and pipes behind. So
    the child becomes the program by itself, right before sh would do it, and says why if it cannot.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, user: User | None) -> None:
        self._user = user
        self._argv = [os.fsencode(word) for word in argv]
        self._env = env
        self._cwd = cwd
        self._ignores_hangup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        told, tell = os.pipe()
        self._told = open(told, "rb")  # noqa: PTH123, SIM115  # a descriptor, closed by `begun`
        self._tell = open(tell, "wb", buffering=0)  # noqa: PTH123, SIM115  # as above
        self._pid: int | None = None
        self._refusal: OSError | None = None
        self._failure: Exception | None = None
        self._gone = False
        """Whether it was abandoned to the end."""
        self.mask: set[int] = set()
        """The signals that it is to have blocked."""
        self.killed = False
        """Whether it was killed by this process while it may have been running."""

    def become(self) -> None:
        """In the new process: be the program, or say why not and end."""
        try:
            self._tell.write(b"%d" % os.getpid())
            # sh lets commands in the background ignore hang-ups, and its own closing of files comes too late
            signal.signal(signal.SIGHUP, signal.SIG_IGN if self._ignores_hangup else signal.SIG_DFL)
            _inherit_no_files()
            if self._user is not None:
                self._user.become()
            if self._cwd is not None:
                os.chdir(self._cwd)
            signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
            os.execve(self._argv[0], self._argv, self._env)  # noqa: S606  # no shell is wanted
        except (OSError, ValueError) as error:
            self._say(error)
        finally:
            os._exit(127)

    def _say(self, error: OSError | ValueError) -> None:
        number = (error.errno if isinstance(error, OSError) else None) or errno.EINVAL
        about = (error.filename if isinstance(error, OSError) else None) or self._argv[0]
        self._tell.write(b"\0%d\0%s" % (number, os.fsencode(about)))

    def begun(self) -> None:
        """In this process: hear what the child says until it is the program, or gone, or was never made."""
        self._tell.close()
        with self._told:
            pid, *refusal = self._told.read().split(b"\0")
        self._pid = int(pid) if pid else None
        if refusal:
            number = int(refusal[0])
            self._refusal = OSError(number, os.strerror(number), os.fsdecode(refusal[1]))
        if self._failure is not None:
            self.kill()

    @property
    def silent(self) -> bool:
        """Whether it was heard to its end, and has said nothing."""
        return self._told.closed and self._pid is None

    def abandon(self, command: RunningCommand | None) -> None:
        """Kill and reap it, once; sh, which closes its pipes then, cannot be asked where it gave no command."""
        if self._gone:
            return
        if not self._told.closed:
            self.begun()
        if self._pid is None and command is not None:  # `begun` was broken off after it had heard it
            self._pid = command.pid
        self.kill()
        if command is not None:
            _finish(command)
        elif self._pid is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
        self._gone = True

    def kill(self) -> None:
        """End it and its children at once."""
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
                self.killed = True

    def guarded(self, tail: Tail) -> Callable[[str], None]:
        """`tail.feed` for sh's thread, which an error would end with the child's output unread."""

        def feed(line: str) -> None:
            try:
                if self._failure is None:
                    tail.feed(line)
            except Exception as error:  # noqa: BLE001  # raised in the caller's thread by `check`
                self._failure = error
                self.kill()

        return feed

    def check(self) -> None:
        """Raise what kept it from starting, or what `on_line` raised."""
        if self._refusal is not None:
            raise self._refusal
        if self._failure is not None:
            raise self._failure


def _inherit_no_files() -> None:
    """Let the program have no open file of this process but the standard ones."""
    for number in _open_files():
        if number > _LAST_STANDARD:
            with contextlib.suppress(OSError):  # that of the listing itself
                os.set_inheritable(number, False)


def _open_files() -> Iterable[int]:
    """The open files of this process; all that there may be where /proc is not mounted."""
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208  # names are wanted
    except FileNotFoundError:
        return range(os.sysconf("SC_OPEN_MAX"))


def _launch(
    child: _Child, argv: Sequence[str], out: Callable[[str], None], err: Callable[[str], None]
) -> RunningCommand:
    """Start `child` by sh, which reads its output in a thread; returns sh's command."""
    import sh  # noqa: PLC0415  # 75 ms that a diagnosis from text alone does not need

    # sh forks. Python 3.12 and later warn when threads run, and sh's own of the command before may.
    warnings.filterwarnings("ignore", message=r".*use of fork\(\)", category=DeprecationWarning, module="sh")
    command = None
    try:
        with (
            Path(os.devnull).open(encoding="utf-8") as no_input,
            uninterrupted() as child.mask,
        ):  # sh's own default is a pipe that never ends
            command = sh.Command(argv[0])(
                *argv[1:],
                _in=no_input,
                _out=out,
                _err=err,
                _tty_out=False,
                _encoding="utf-8",
                _decode_errors="replace",
                _new_session=True,
                _preexec_fn=child.become,
                _ok_code=_ANY,
                _bg=True,  # returns at once, so that there is something to kill
                _return_cmd=True,
                _bg_exc=False,
            )
        child.begun()
    except BaseException as error:
        child.abandon(command)
        if isinstance(error, sh.CommandNotFound):
            number = errno.EACCES if os.path.lexists(argv[0]) else errno.ENOENT
            raise OSError(number, os.strerror(number), argv[0]) from error
        if isinstance(error, ValueError) and child.silent:  # sh reads numbers where there is nothing
            reap_child_of(error)
            raise _NeverBegunError from error
        raise
    return command


def _wait(command: RunningCommand, child: _Child, timeout_s: float | None) -> int:
    """Return the exit status, or minus the number of the signal that ended it.

    The limit is a timer of its own: with sh's a thread looks ten times a second, and each call waits for it.
    """
    limit = None if timeout_s is None else threading.Timer(timeout_s, child.kill)
    try:
        if limit is not None:
            limit.start()
        return int(command.wait().exit_code)
    finally:
        if limit is not None:
            limit.cancel()
            with contextlib.suppress(RuntimeError):  # it had not begun when something broke in, and ends at once
                limit.join()


def _finish(command: RunningCommand) -> None:
    """Let sh reap `command`, which was killed, and close its pipes."""
    try:
        command.wait()
    except ChildProcessError:  # what broke in came right after sh had reaped it, and sh knows no status
        command.process.exit_code = -signal.SIGKILL
        command.wait()


def overlay(env: Mapping[str, str | None] | None, user: User | None = None) -> dict[str, str]:
    """This process's environment with `env` laid over it; a None value removes the name.

    What runs as another `user` gets none of the secrets of this process's own.
    """
    merged: dict[str, str | None] = {**os.environ, **(env or {})}
    kept = {name: value for name, value in merged.items() if value is not None}
    if user is None:
        return kept
    return {name: value for name, value in kept.items() if os.environ.get(name) != value or not is_secret(name, value)}


class HelperResult(NamedTuple):
    """What a staging helper left."""

    stdout: str
    stderr: str
    status: tuple[bytes, ...]
    """Whole lines that the helper wrote about itself."""
    returncode: int
    """Of the helper itself; the command's is in `status`."""
    timed_out: bool


class Helper:
    """A staging helper that runs, with the ends of its pipes in this process."""

    def __init__(self, process: subprocess.Popen[bytes], status: int) -> None:
        self._process = process
        self._status = status

    def finish(
        self, *, on_line: OnLine | None, timeout_s: float | None, poll: Callable[[], None] | None = None
    ) -> HelperResult:
        """Pass its command's lines on until it ends, or kill all of it after `timeout_s` seconds.

        `poll` is called several times a second, however silent the command. Whatever is raised meanwhile (an
        interrupt, an error of `on_line` or `poll`) kills all of it first.
        """
        out, err = Lines(Tail(on_line)), Lines(Tail(on_line))
        status = bytearray()
        try:
            timed_out = self._pump({"out": out.feed, "err": err.feed, "status": status.extend}, timeout_s, poll)
        finally:
            self._stop()
        *lines, _cut_off = bytes(status).split(b"\n")  # by a death in the middle of it
        return HelperResult(out.text(), err.text(), tuple(lines), self._process.returncode, timed_out)

    def _pump(self, feeds: Mapping[str, Feed], timeout_s: float | None, poll: Callable[[], None] | None) -> bool:
        """Read all pipes until the status pipe ends, which the helper alone holds; return whether time ran out."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        timed_out = False
        assert self._process.stdout is not None  # noqa: S101  # both are pipes: see start_helper
        assert self._process.stderr is not None  # noqa: S101
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ, "out")
            selector.register(self._process.stderr, selectors.EVENT_READ, "err")
            selector.register(self._status, selectors.EVENT_READ, "status")
            while self._status in selector.get_map():
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    (self._process.kill if timed_out else self._process.terminate)()
                    timed_out, deadline = True, time.monotonic() + HELPER_GRACE_S
                    continue
                if poll is not None:
                    poll()
                    left = POLL_S if left is None else min(left, POLL_S)
                _read_ready(selector, feeds, left)
            while selector.get_map() and _read_ready(selector, feeds, 0):
                pass
        return timed_out

    def _stop(self) -> None:
        """End it, first so that it can kill its command, then by force, and close all pipes."""
        try:
            if self._process.poll() is None:
                self._process.terminate()
                self._process.wait(HELPER_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        finally:
            os.close(self._status)
            with self._process:  # closes its pipes and waits
                pass


def start_helper(script: Path, request: bytes, *, inherit: Sequence[int] = ()) -> Helper:
    """Start the staging helper `script` with this interpreter and hand it `request`.

    It runs isolated, in a session of its own, so that a Ctrl-C in the terminal reaches envmedic
    alone, which then kills it. The helper dies with the *thread* that called this: keep that thread
    alive until `Helper.finish` returns (call both in it). `inherit` are descriptors that it and its
    commands keep open, such as the journal's lock. Raises OSError when it cannot be started.
    """
    status, theirs = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-S", os.fspath(script), str(theirs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(theirs, *inherit),
            start_new_session=True,
        )
    except BaseException:
        os.close(status)
        raise
    finally:
        os.close(theirs)
    assert process.stdin is not None  # noqa: S101  # a pipe: see above
    try:
        with contextlib.suppress(BrokenPipeError), process.stdin as stdin:  # a dead helper shows by its empty status
            stdin.write(request)
    except BaseException:
        process.kill()
        process.wait()
        os.close(status)
        raise
    return Helper(process, status)


def _read_ready(selector: selectors.BaseSelector, feeds: Mapping[str, Feed], wait: float | None) -> bool:
    """Read once from every pipe that has something, drop those at their end; return whether any had."""
    ready = selector.select(wait)
    for key, _ in ready:
        data = os.read(key.fd, 1 << 16)
        if not data:
            selector.unregister(key.fileobj)
        feeds[key.data](data)
    return bool(ready)
