"""Plain commands by sh: short, without side effects, and of no use but for what they print."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from envmedic.errors import require_spare
from envmedic.model.ports import CommandResult
from envmedic.proc.child import deferred_signals

_ANY = tuple(range(-signal.NSIG, 256))
"""Every exit status and every signal: how a command ends is a result."""


def collect(argv: Sequence[str], *, timeout_s: float) -> CommandResult:
    """Run `argv`, an absolute path first, without standard input, and collect what it prints.

    A non-zero exit, a signal and a timeout are results. Raises OSError when it cannot be started, and Exhausted where
    memory or descriptors ran out.
    """
    import sh

    started, command, timed_out, number = time.monotonic(), None, False, b""
    try:
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as failure, os.fdopen(writing, "wb", buffering=0) as report:

            def execute() -> None:
                """Replace the child by the program: a failed exec in sh itself leaves a zombie and descriptors."""
                try:
                    os.execv(argv[0], list(argv))  # noqa: S606  # a program, never a shell line
                except OSError as error:
                    report.write(str(error.errno).encode())
                finally:
                    os._exit(127)

            # sh's own default for the input is a pipe that never ends. A signal waits until there is something to kill.
            with Path(os.devnull).open(encoding="utf-8") as no_input, deferred_signals():
                command = sh.Command(argv[0])(
                    *argv[1:],
                    _in=no_input,
                    _tty_out=False,
                    _encoding="utf-8",
                    _decode_errors="replace",
                    _timeout=timeout_s,
                    _ok_code=_ANY,
                    _bg=True,  # returns at once
                    _bg_exc=False,
                    _return_cmd=True,
                    _preexec_fn=execute,
                )
            command.wait()
            report.close()
            number = failure.read()
    except sh.TimeoutException:
        timed_out = True
    except OSError as error:
        require_spare(error)
        raise
    except (sh.CommandNotFound, sh.ForkException, ValueError) as error:  # ValueError: killed before it began
        raise OSError(f"{argv[0]} cannot be started") from error
    except BaseException:
        if command is not None:
            with suppress(ProcessLookupError):
                command.kill()
        raise
    assert command is not None  # noqa: S101  # it has been waited for
    if number:
        raise OSError(int(number), os.strerror(int(number)), argv[0])
    return CommandResult(
        argv=tuple(argv),
        returncode=int(command.exit_code),
        stdout=command.stdout.decode("utf-8", "replace"),
        stderr=command.stderr.decode("utf-8", "replace"),
        seconds=time.monotonic() - started,
        timed_out=timed_out,
    )
