"""Running commands. The only module that imports sh or starts a process.

`run` is for the commands that envmedic itself needs (uv, an interpreter asked for its version).
Commands of a transaction go through the staging helper, which `subprocess` must start: sh forks,
and the mount namespace wants a single-threaded process of its own.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from envmedic.model.ports import CommandResult, OnLine

KEPT_CHARACTERS = 256 * 1024
_DECODE = {"_encoding": "utf-8", "_decode_errors": "replace"}


class Tail:
    """The end of a stream of lines, at most `KEPT_CHARACTERS` long, each line passed on as it comes."""

    def __init__(self, on_line: OnLine | None = None) -> None:
        self._lines: deque[str] = deque()
        self._length = 0
        self._on_line = on_line

    def feed(self, line: str) -> None:
        """Take one line, with or without its line end."""
        self._lines.append(line if line.endswith("\n") else line + "\n")
        self._length += len(self._lines[-1])
        while self._length > KEPT_CHARACTERS and len(self._lines) > 1:
            self._length -= len(self._lines.popleft())
        if self._on_line is not None:
            self._on_line(line.rstrip("\r\n"))

    def text(self) -> str:
        """What was kept."""
        return "".join(self._lines)[-KEPT_CHARACTERS:]


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: str | None = None,
    on_line: OnLine | None = None,
    timeout_s: float | None = None,
) -> CommandResult:
    """Run `argv` without a terminal or standard input, and return how it ended.

    `argv[0]` is an absolute path. `env` is laid over this process's environment; None unsets a name.
    `on_line` gets each line of both streams as it comes. A non-zero exit, a signal and a timeout
    are results. Raises OSError when the program cannot be started.
    """
    import sh  # noqa: PLC0415  # 75 ms that a diagnosis from text alone does not need

    started = time.monotonic()
    out, err = Tail(on_line), Tail(on_line)
    timed_out = False
    try:
        command = sh.Command(argv[0])
    except sh.CommandNotFound as error:
        raise FileNotFoundError(argv[0]) from error
    no_input = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  # sh's own default is a pipe that never ends
    try:
        returncode = command(
            *argv[1:],
            _env=overlay(env),
            _cwd=cwd,
            _in=no_input,
            _out=out.feed,
            _err=err.feed,
            _tty_out=False,
            _timeout=timeout_s,
            _ok_code=list(range(256)),
            _return_cmd=True,
            **_DECODE,
        ).exit_code
    except sh.TimeoutException as error:
        returncode, timed_out = -abs(int(error.exit_code)), True
    except sh.SignalException as error:
        returncode = -abs(int(error.exit_code))
    finally:
        no_input.close()
    return CommandResult(
        argv=tuple(argv),
        returncode=returncode,
        stdout=out.text(),
        stderr=err.text(),
        seconds=time.monotonic() - started,
        timed_out=timed_out,
    )


def overlay(env: Mapping[str, str | None] | None) -> dict[str, str]:
    """This process's environment with `env` laid over it; a None value removes the name."""
    merged: dict[str, str | None] = {**os.environ, **(env or {})}
    return {name: value for name, value in merged.items() if value is not None}
