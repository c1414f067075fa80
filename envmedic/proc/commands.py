"""Commands that envmedic itself needs, without a terminal or standard input."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial

from envmedic.errors import require_spare
from envmedic.model.ports import CommandResult, OnLine
from envmedic.owner import User
from envmedic.proc.child import Child
from envmedic.proc.output import Lines, Tail
from envmedic.redact import is_secret

_TO_START = frozenset(("PATH", "LANG", "LD_LIBRARY_PATH", "NIX_LD", "NIX_LD_LIBRARY_PATH"))
"""For the loader and the locale; NixOS starts programs of others by a loader that NIX_LD names."""


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: str | None = None,
    on_line: OnLine | None = None,
    timeout_s: float | None = None,
    cancel: Callable[[], bool] | None = None,
) -> CommandResult:
    """Run `argv` without a terminal or standard input, and return how it ended.

    `argv[0]` is an absolute path. `env` is laid over this process's
    environment; None unsets a name. `on_line` gets each line of both streams as it comes. A non-zero exit, a signal and
    a timeout are results. On a timeout, once `cancel` says so, and when an exception such as KeyboardInterrupt or one
    of `on_line` breaks in, the program and the children in its session are killed first. Raises OSError when the
    program cannot be started, for whatever reason the kernel or `cwd` gives.
    """
    with closing(Child(argv, env=overlay(env), cwd=cwd, limit_s=timeout_s)) as child:
        child.start()

        def poll() -> None:
            if cancel is not None and cancel():
                child.kill()

        return _result(child, on_line, poll)


def _result(child: Child, on_line: OnLine | None = None, poll: Callable[[], object] | None = None) -> CommandResult:
    """Hear `child` to its end."""
    out, err = Lines(Tail(on_line)), Lines(Tail(on_line))
    child.listen(out.feed, err.feed, poll=poll)
    returncode = child.reap()
    return CommandResult(
        argv=child.argv,
        returncode=returncode,
        stdout=out.text(),
        stderr=err.text(),
        seconds=time.monotonic() - child.started,
        timed_out=child.killed and returncode == -signal.SIGKILL,
    )


class Question:
    """A program that answers in a moment: `begin` it, do something else, hear its `answer`; `close` it in any case.

    It has `timeout_s` seconds from its start on. Where SIGKILL ends it before, which nobody here has sent, it is
    started once more: the kernel kills so when memory is short, and that says nothing of the program. As root it runs
    as `user`, where one is given. Otherwise as `ask`, errors too.
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
        self._new = partial(Child, argv, env=overlay(env, user), cwd=cwd, user=user, limit_s=timeout_s)
        self._child = self._new()

    def begin(self) -> None:
        """Start it."""
        try:
            self._child.start()
        except OSError as error:
            require_spare(error)
            raise

    def answer(self) -> CommandResult:
        """Wait for its end; once. Raises OSError where it was killed and cannot be started again."""
        result = _result(self._child)
        if result.returncode != -signal.SIGKILL or result.timed_out:
            return result
        self.close()
        self._child = self._new()
        self.begin()
        return _result(self._child)

    def close(self) -> None:
        """Kill it if it was not heard to its end."""
        self._child.close()


def ask(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str | None] | None = None,
    cwd: str | None = None,
    user: User | None = None,
) -> CommandResult:
    """Run `argv` as `run` does, for an answer that comes in a moment: no line of it is passed on before.

    A non-zero exit, a signal and a timeout, which kills the program and the children in its session, are
    results. Raises OSError when the program cannot be started, and Exhausted where memory or descriptors ran out.
    """
    with closing(Question(argv, timeout_s=timeout_s, env=env, cwd=cwd, user=user)) as question:
        question.begin()
        return question.answer()


def run_in_terminal(argv: Sequence[str]) -> int:
    """Run `argv`, such as the user's editor, on this terminal; returns its exit status, or minus a signal's number.

    Ctrl-C is the program's own affair meanwhile. Called in the main thread. Raises OSError when it cannot be started.
    """
    former = signal.signal(signal.SIGINT, lambda *_: None)  # a handler, unlike ignoring, is not the program's too
    try:
        # no session of its own, which would have no terminal
        with closing(Child(argv, stdin=None, stdout=None, stderr=None, session=False)) as child:
            child.start()
            return child.reap()
    finally:
        signal.signal(signal.SIGINT, former)


def without_others() -> dict[str, None]:
    """Words that unset every variable but those a program needs to start, for questions to untrusted programs."""
    return {name: None for name in os.environ if name not in _TO_START and not name.startswith("LC_")}


def overlay(env: Mapping[str, str | None] | None, user: User | None = None) -> dict[str, str]:
    """This process's environment with `env` laid over it; a None value removes the name.

    What runs as another `user` gets none of the secrets of this process's own.
    """
    merged: dict[str, str | None] = {**os.environ, **(env or {})}
    kept = {name: value for name, value in merged.items() if value is not None}
    if user is None:
        return kept
    return {name: value for name, value in kept.items() if os.environ.get(name) != value or not is_secret(name, value)}
