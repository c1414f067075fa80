"""Short questions to other programs: their version, their settings.

sh takes 75 ms to load, which is a fifth of a diagnosis; these need nothing of what it does better.
"""

from __future__ import annotations

import errno
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import partial

from envmedic.errors import require_spare
from envmedic.model.ports import CommandResult
from envmedic.owner import User
from envmedic.proc import _read_ready, overlay
from envmedic.proc.lines import Lines, Tail

_LOOK_S = 0.2
"""How often a program that is silent is asked whether it has ended."""
_LINGER_S = 0.5
"""How long outputs are read on that something else holds open after the program has ended."""


class Question:
    """A program that was started and has not been heard yet; `close` it, whether or not it was.

    It has `timeout_s` seconds from its start on. Where SIGKILL ends it before, which nobody here has sent, it is
    started once more: the kernel kills so when memory is short, and that says nothing of the program. Otherwise as
    `ask`, errors too.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        env: Mapping[str, str | None] | None = None,
        cwd: str | None = None,
        user: User | None = None,
    ) -> None:
        self._argv = tuple(argv)
        self._timeout_s = timeout_s
        self._start = partial(_start, argv, overlay(env, user), cwd, user)
        self._begin()

    def _begin(self) -> None:
        self._started = time.monotonic()
        self._deadline = self._started + self._timeout_s
        self._process = self._start()

    def answer(self) -> CommandResult:
        """Wait for its end; once. Raises OSError where it was killed and cannot be started again."""
        result = self._heard()
        if result.returncode != -signal.SIGKILL or result.timed_out:
            return result
        self.close()
        self._begin()
        return self._heard()

    def _heard(self) -> CommandResult:
        out, err = Lines(Tail()), Lines(Tail())
        killed = _hear(self._process, out, err, self._deadline)
        return CommandResult(
            argv=self._argv,
            returncode=self._process.returncode,
            stdout=out.text(),
            stderr=err.text(),
            seconds=time.monotonic() - self._started,
            timed_out=killed and self._process.returncode == -signal.SIGKILL,
        )

    def close(self) -> None:
        """Kill it if it was not heard to its end."""
        with self._process:
            _kill(self._process)


def ask(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str | None] | None = None,
    cwd: str | None = None,
    user: User | None = None,
) -> CommandResult:
    """Run `argv` as `proc.run` does, for an answer that comes in a moment: no line of it is passed on before.

    A non-zero exit, a signal and a timeout, which kills the program and the children in its session, are
    results. Raises OSError when the program cannot be started, and Exhausted where memory or descriptors ran out.
    """
    with closing(Question(argv, timeout_s=timeout_s, env=env, cwd=cwd, user=user)) as question:
        return question.answer()


def _start(argv: Sequence[str], env: Mapping[str, str], cwd: str | None, user: User | None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603  # the words are the caller's
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
            user=None if user is None else user.uid,
            group=None if user is None else user.gid,
            extra_groups=None if user is None else user.groups,
        )
    except OSError as error:
        require_spare(error)
        raise
    except ValueError as error:  # a NUL in a word
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), argv[0]) from error


def _hear(process: subprocess.Popen[bytes], out: Lines, err: Lines, deadline: float) -> bool:
    """Read both outputs to their end, then wait; returns whether time ran out and the program was killed."""
    killed = False
    if process.poll() is not None:  # it has answered in time, however late it is heard
        deadline = max(deadline, time.monotonic() + _LINGER_S)
    with selectors.DefaultSelector() as selector:
        for pipe, name in ((process.stdout, "out"), (process.stderr, "err")):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ, name)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left > 0:
                if not _read_ready(selector, {"out": out.feed, "err": err.feed}, min(left, _LOOK_S)):
                    deadline = _deadline(process, deadline)
            elif process.poll() is None:
                killed = _kill(process)
                deadline += _LINGER_S
            else:
                break
    killed = _overdue(process, deadline) or killed
    process.wait()
    return killed


def _deadline(process: subprocess.Popen[bytes], deadline: float) -> float:
    """Until when a silent program's outputs are read: not for long once it has ended."""
    return deadline if process.poll() is None else min(deadline, time.monotonic() + _LINGER_S)


def _overdue(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Wait for a program that has closed its outputs; returns whether it had to be killed."""
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return _kill(process)
    return False


def _kill(process: subprocess.Popen[bytes]) -> bool:
    """Kill the program and the children in its session, unless it was waited for: its number may be another's then."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return True
