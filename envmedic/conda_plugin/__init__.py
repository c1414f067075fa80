"""What conda loads where envmedic is installed beside it: a health check of ``conda doctor``, and a hint after a failure.

Runs inside conda, of any version: nothing here raises, and what a conda lacks is left out.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIMIT_S = 60.0
"""How long the health check may take, in seconds."""

_COMMANDS = {"create", "install", "remove", "update"}

_PROGRAM = """
import sys
sys.path.append(sys.argv.pop(1))
sys.argv[0] = "envmedic"
from envmedic.__main__ import program
sys.exit(program())
"""
"""envmedic, for a Python that is isolated: nothing of the working directory is loaded."""


class Hint(logging.Handler):
    """Names the next command once, after conda has told of an error in an environment that exists."""

    def __init__(self, prefix: Callable[[], str]) -> None:
        super().__init__(logging.ERROR)
        self._prefix = prefix
        self._told = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write the hint to stderr; `record` says by its level that something failed."""
        del record
        error = sys.exc_info()[1]  # conda tells of a dry run and of a "no" as errors, too
        if self._told or isinstance(error, KeyboardInterrupt) or getattr(error, "return_code", 1) == 0:
            return
        try:
            prefix = self._prefix()
            if not Path(prefix, "conda-meta").is_dir():
                return
            self._told = True
            sys.stderr.write(f"envmedic: what is wrong there: envmedic diagnose -p {shlex.quote(prefix)}\n")
        except Exception as failure:  # noqa: BLE001 - a hint that cannot be given must not end conda
            _log(failure)


def add_hint(command: str, prefix: Callable[[], str] | None = None) -> None:
    """Have errors of this process followed by a hint; `command` is conda's name of the command, `prefix` asks for its target."""
    del command
    logger = logging.getLogger("conda.stderr")
    if not any(isinstance(one, Hint) for one in logger.handlers):
        logger.addHandler(Hint(prefix or _target))


def check(prefix: str, verbose: bool = False, *, limit_s: float = LIMIT_S) -> None:  # noqa: FBT001, FBT002 - conda's order
    """Print what ``envmedic diagnose`` says of `prefix`, or that it took longer than `limit_s` seconds."""
    try:
        sys.stdout.write(f"envmedic:\n\n{_diagnosis(prefix, limit_s, verbose=verbose)}\n\n")
    except Exception as failure:  # noqa: BLE001 - the other checks of conda doctor go on
        _log(failure)


def _diagnosis(prefix: str, limit_s: float, *, verbose: bool) -> str:
    place = str(Path(__file__).parents[2])
    command = [sys.executable, "-I", "-c", _PROGRAM, place, "diagnose", "-p", prefix, *(["-v"] if verbose else [])]
    with subprocess.Popen(  # noqa: S603 - our own program, no shell
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as child:
        try:
            said, _ = child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # its children hold the pipe, too
            return f"not finished in {limit_s:g} s, and stopped. Run it by itself: envmedic diagnose -p {shlex.quote(prefix)}"
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    return said.decode("utf-8", "replace").strip()


def _target() -> str:
    from conda.base.context import context  # noqa: PLC0415 - only in conda

    return str(context.target_prefix)


def _log(failure: Exception) -> None:
    logging.getLogger(__name__).warning("envmedic: %r", failure)


def conda_health_checks() -> list[Any]:
    """Hook of conda: checks of ``conda doctor``."""
    return _of_conda("CondaHealthCheck", name="envmedic", action=check)


def conda_pre_commands() -> list[Any]:
    """Hook of conda: what runs before a command. conda 24.7 has no hook for one that failed."""
    return _of_conda("CondaPreCommand", name="envmedic", action=add_hint, run_for=_COMMANDS)


def _of_conda(kind: str, **values: Any) -> list[Any]:
    """One value of a type of ``conda.plugins``, or none where this conda has no such type, or another one."""
    try:
        from conda import plugins  # noqa: PLC0415 - only in conda

        return [getattr(plugins, kind)(**values)] if hasattr(plugins, kind) else [_typed(kind)(**values)]
    except Exception as failure:  # noqa: BLE001 - an error here would end every command of conda
        _log(failure)
        return []


def _typed(kind: str) -> Any:
    from conda.plugins import types  # noqa: PLC0415 - only in conda

    return getattr(types, kind)


try:
    from conda.plugins import hookimpl
except Exception:  # noqa: BLE001 - no conda here, one without plugins, or a broken one: there is nothing to register with
    hookimpl = None
if hookimpl is not None:
    hookimpl(conda_health_checks)
    hookimpl(conda_pre_commands)
