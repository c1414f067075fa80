"""Pythons and uv: commands of uv for one, and the search for one on this machine, without downloads."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

from envmedic import proc
from envmedic.errors import InputError, InstallerError
from envmedic.model.facts import Interpreter
from envmedic.model.ports import CommandResult

_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
_TIMEOUT_S = 60.0
_FOR_UV = (
    "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "PATH", "UV_CACHE_DIR", "UV_CONFIG_FILE", "UV_NO_CONFIG",
)  # fmt: skip
"""Where uv finds its cache. None of them holds a secret."""


def python_for(interpreter: Interpreter) -> str:
    """The Python that uv asks for tags: the environment's own, else the one that it is made with.

    The two differ while the environment is still broken and only its clone has a Python that starts. uv starts it with
    the .pth files of its site-packages, so that for an environment that nobody named, the Python that answers for it is
    asked; raises InputError where there is none.
    """
    path = interpreter.path
    if not interpreter.named:
        if interpreter.answers is None:
            raise InputError(
                f"{path} is not started, since nobody named its environment",
                cause="it leads to no Python of yours or of the system's outside of the project",
                hint=f"Name it: -p {shlex.quote(os.path.dirname(os.path.dirname(path)))}",  # noqa: PTH120
            )
        return interpreter.answers
    if os.access(path, os.X_OK) or not interpreter.base_prefix or not interpreter.version:
        return path
    base = f"{interpreter.base_prefix}/bin/python{interpreter.version.rpartition('.')[0]}"
    return base if os.access(base, os.X_OK) else path


def run_for(
    python: str, argv: Sequence[str], *, env: Mapping[str, str | None] | None = None, timeout_s: float
) -> CommandResult:
    """Run a command of uv, `argv`, for a Python of an untrusted environment; otherwise as `proc.run`.

    uv starts the Python, to ask it for its tags, with all variables that uv has: logins of indexes, tokens of the
    shell. So it is made to ask before, without those, and finds the answer in its cache. Where it keeps no cache
    (UV_NO_CACHE), it asks once more.
    """
    given = {**os.environ, **(env or {})}
    bare = {**proc.without_others(), **{name: given.get(name) for name in _FOR_UV}}
    first = (argv[0], "python", "find", "--no-project", "--no-python-downloads", "--offline", "--quiet", python)
    proc.ask(first, env=bare, timeout_s=_TIMEOUT_S)  # where that fails, `argv` says why
    return proc.run(argv, env=env, timeout_s=timeout_s)


def find(uv: str, wanted: str, *, given: str | None = None) -> tuple[str, str]:
    """Path and version of a Python of the same minor version as `wanted` (any, where it is empty).

    `given` is what the user named: a path, or a version. Raises InstallerError where there is none.
    """
    minor = ".".join(wanted.split(".")[:2])
    asked = given or minor
    argv = [uv, "python", "find", "--no-config", "--no-project", "--no-python-downloads", "--system", "--color=never"]
    # Without VIRTUAL_ENV, and with --system: an activated environment would become the base of the new one.
    result = proc.run([*argv, *((asked,) if asked else ())], env={"VIRTUAL_ENV": None}, timeout_s=_TIMEOUT_S)
    path = result.stdout.strip().rpartition("\n")[2]
    if result.returncode != 0 or not path:
        raise InstallerError(
            f"No Python {asked} was found on this machine",
            cause=result.stderr.strip().rpartition("\n")[2] or None,
            hint=f"Install Python {minor or asked}, or name one with --python PATH",
        )
    # A path that the user gave is found whatever its version is: uv does not compare it with anything.
    version = _version(path)
    if minor and ".".join(version.split(".")[:2]) != minor:
        raise InstallerError(
            f"{path} is Python {version}",
            cause=f"The lock is for Python {minor}, and its wheels are built for it",
            hint=f"Name a Python {minor} with --python PATH",
        )
    return path, version


def _version(path: str) -> str:
    # -I and -S: neither variables nor site-packages of that Python may add output or fail.
    result = proc.ask([path, "-I", "-S", "-c", _VERSION], env=proc.without_others(), timeout_s=_TIMEOUT_S)
    if result.returncode != 0:
        raise InstallerError(f"{path} does not start", cause=result.stderr.strip() or None, hint="Name another Python")
    return result.stdout.strip()
