"""Environment variables for programs of an environment.

They run as in a shell where the environment was activated: what the user exported stays (PYTHONPATH
and LD_LIBRARY_PATH too, since they take part in many faults), with VIRTUAL_ENV or CONDA_PREFIX and
PATH set as activation does, PYTHONHOME unset as activation does, and without the settings of pip
and uv that would make them act on another environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

REDIRECTING = frozenset({
    "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_DRY_RUN", "PIP_REPORT",
    "PIP_IGNORE_INSTALLED", "PIP_BREAK_SYSTEM_PACKAGES",
    "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "UV_SYSTEM_PYTHON", "UV_PYTHON", "UV_TARGET", "UV_PREFIX",
    "UV_WORKING_DIRECTORY", "UV_WORKING_DIR", "UV_DRY_RUN", "UV_LINK_MODE", "UV_BREAK_SYSTEM_PACKAGES",
})  # fmt: skip
"""Variables of pip and uv that name another target, or keep them from doing what they are told."""
_OF_ACTIVATION = frozenset({"PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "VIRTUAL_ENV_PROMPT", "__PYVENV_LAUNCHER__"})


def variables(prefix: Path, own: Mapping[str, str], inherited: Mapping[str, str] | None = None) -> dict[str, str]:
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
    return {**base, **own}


def _path(prefix: Path, before: str | None) -> str:
    own = os.fspath(prefix / "bin")
    others = [part for part in (before or os.defpath).split(os.pathsep) if part not in {"", own}]
    return os.pathsep.join([own, *others])
