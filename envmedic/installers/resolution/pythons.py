"""Search for a Python on this machine by uv, without downloads."""

from __future__ import annotations

from envmedic import proc
from envmedic.errors import InstallerError

_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
_TIMEOUT_S = 60.0


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
