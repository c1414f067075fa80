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
from contextlib import suppress

from envmedic.model.ports import CommandResult
from envmedic.owner import User
from envmedic.proc import Tail, _Lines, _read_ready, overlay

_LOOK_S = 0.2
"""How often a program that is silent is asked whether it has ended."""
_LINGER_S = 0.5
"""How long outputs are read on that something else holds open after the program has ended."""


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
    results. Raises OSError when the program cannot be started.
    """
    started = time.monotonic()
    process = _start(argv, overlay(env), cwd, user)
    out, err = _Lines(Tail()), _Lines(Tail())
    with process:
        try:
            killed = _hear(process, out, err, started + timeout_s)
        except BaseException:
            _kill(process)
            raise
    return CommandResult(
        argv=tuple(argv),
        returncode=process.returncode,
        stdout=out.text(),
        stderr=err.text(),
        seconds=time.monotonic() - started,
        timed_out=killed and process.returncode == -signal.SIGKILL,
    )


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
    except ValueError as error:  # a NUL in a word
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), argv[0]) from error


def _hear(process: subprocess.Popen[bytes], out: _Lines, err: _Lines, deadline: float) -> bool:
    """Read both outputs to their end, then wait; returns whether time ran out and the program was killed."""
    assert process.stdout is not None  # noqa: S101  # both are pipes: see `_start`
    assert process.stderr is not None  # noqa: S101
    killed = False
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, "out")
        selector.register(process.stderr, selectors.EVENT_READ, "err")
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
    return _ended(process, deadline) or killed


def _deadline(process: subprocess.Popen[bytes], deadline: float) -> float:
    """Until when a silent program's outputs are read: not for long once it has ended."""
    return deadline if process.poll() is None else min(deadline, time.monotonic() + _LINGER_S)


def _ended(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Wait for a program that has closed its outputs; returns whether it had to be killed."""
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return _kill(process)
    return False


def _kill(process: subprocess.Popen[bytes]) -> bool:
    """Kill the program and the children in its session. Its number is still its own: it has not been waited for."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return True
