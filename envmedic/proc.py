"""Running commands. The only module that imports sh or starts a process.

`run` is for the commands that envmedic itself needs (uv, an interpreter asked for its version).
Commands of a transaction go through the staging helper, which `subprocess` must start: sh forks,
and the mount namespace wants a single-threaded process of its own.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from envmedic.model.ports import CommandResult, OnLine

KEPT_CHARACTERS = 256 * 1024
HELPER_GRACE_S = 5.0
"""How long a staging helper has to kill its command before it is killed itself."""


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
            _encoding="utf-8",
            _decode_errors="replace",
        ).exit_code
    except sh.TimeoutException as error:
        returncode, timed_out = -abs(int(error.exit_code or 0)), True
    except sh.SignalException as error:
        returncode = -abs(int(error.exit_code or 0))
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


class HelperResult(NamedTuple):
    """What a staging helper left."""

    stdout: str
    stderr: str
    status: tuple[bytes, ...]
    """Lines that the helper wrote about itself."""
    returncode: int
    """Of the helper itself; the command's is in `status`."""
    timed_out: bool


class Helper:
    """A staging helper that runs, with the ends of its pipes in this process."""

    def __init__(self, process: subprocess.Popen[bytes], status: int) -> None:
        self._process = process
        self._status = status

    def finish(self, *, on_line: OnLine | None, timeout_s: float | None) -> HelperResult:
        """Pass its command's lines on until it ends, or kill all of it after `timeout_s` seconds.

        Whatever is raised meanwhile (an interrupt, an error of `on_line`) kills all of it first.
        """
        out, err = _Lines(Tail(on_line)), _Lines(Tail(on_line))
        status = bytearray()
        try:
            timed_out = self._pump({"out": out.feed, "err": err.feed, "status": status.extend}, timeout_s)
        finally:
            self._stop()
        return HelperResult(
            out.text(), err.text(), tuple(bytes(status).splitlines()), self._process.returncode, timed_out
        )

    def _pump(self, feeds: Mapping[str, Callable[[bytes], None]], timeout_s: float | None) -> bool:
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


def _read_ready(
    selector: selectors.BaseSelector, feeds: Mapping[str, Callable[[bytes], None]], wait: float | None
) -> bool:
    """Read once from every pipe that has something, drop those at their end; return whether any had."""
    ready = selector.select(wait)
    for key, _ in ready:
        data = os.read(key.fd, 1 << 16)
        if not data:
            selector.unregister(key.fileobj)
        feeds[key.data](data)
    return bool(ready)


class _Lines:
    """Bytes cut into lines for a `Tail`; a line that never ends is passed on in pieces."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take what came; nothing means the end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._tail.feed(line.decode("utf-8", "replace") + "\n")
        if self._rest and (not data or len(self._rest) > KEPT_CHARACTERS):
            self._tail.feed(self._rest.decode("utf-8", "replace"))
            self._rest = b""

    def text(self) -> str:
        """What was kept."""
        self.feed(b"")
        return self._tail.text()
