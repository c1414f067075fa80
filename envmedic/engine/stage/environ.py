"""Environment variables and user for programs of an environment.

They run as in a shell where the environment was activated: what the user exported stays (PYTHONPATH
and LD_LIBRARY_PATH too, since they take part in many faults), with VIRTUAL_ENV or CONDA_PREFIX and
PATH set as activation does, PYTHONHOME unset as activation does, and without the settings of pip
and uv that would make them act on another environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from envmedic.owner import User, can_write, has_home, owner
from envmedic.redact import is_secret

__all__ = ["REDIRECTING", "User", "owner", "variables"]

REDIRECTING = frozenset({
    "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_DRY_RUN", "PIP_REPORT",
    "PIP_IGNORE_INSTALLED", "PIP_BREAK_SYSTEM_PACKAGES",
    "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "UV_SYSTEM_PYTHON", "UV_PYTHON", "UV_TARGET", "UV_PREFIX",
    "UV_WORKING_DIRECTORY", "UV_WORKING_DIR", "UV_DRY_RUN", "UV_LINK_MODE", "UV_BREAK_SYSTEM_PACKAGES",
})  # fmt: skip
"""Variables of pip and uv that name another target, or keep them from doing what they are told."""
_OF_ACTIVATION = frozenset({"PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "VIRTUAL_ENV_PROMPT", "__PYVENV_LAUNCHER__"})
_OF_A_HOME = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "UV_CACHE_DIR",
              "PIP_CACHE_DIR")  # fmt: skip
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")


def variables(
    prefix: Path, user: User | None, own: Mapping[str, str], inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables for a program of the environment at `prefix`; those of `own` win.

    `inherited` is this process's environment when it is not given.
    """
    base = {
        name: value
        for name, value in (os.environ if inherited is None else inherited).items()
        if name not in REDIRECTING and name not in _OF_ACTIVATION
    }
    # No activate script is run: it is text of the environment, and a broken one would stop every check.
    base["PATH"] = _path(prefix, base.get("PATH"))
    base["CONDA_PREFIX" if (prefix / "conda-meta").is_dir() else "VIRTUAL_ENV"] = os.fspath(prefix)
    if user is not None:
        # Root's caches and tokens are not for the owner: unreadable at best, leaked at worst.
        base = {name: value for name, value in base.items() if name not in _OF_A_HOME and not is_secret(name, value)}
        for name in _TEMPORARY:  # of root's own, where each user has one
            if name in base and not can_write(user, Path(base[name])):
                del base[name]
        base.update(HOME=user.home, USER=user.name, LOGNAME=user.name)
        if not has_home(user):
            base["UV_NO_CACHE"] = "1"  # uv ends at once where it can make no cache
    return {**base, **own}


def _path(prefix: Path, before: str | None) -> str:
    own = os.fspath(prefix / "bin")
    others = [part for part in (before or os.defpath).split(os.pathsep) if part not in {"", own}]
    return os.pathsep.join([own, *others])
