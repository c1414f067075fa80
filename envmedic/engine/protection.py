"""Environments that are not repaired, or only when the user says so."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from envmedic.errors import EnvironmentBusy, PreflightError
from envmedic.model.ports import AllowName, ProcessUser

_OPERATING_SYSTEM = frozenset({"/", "/usr", "/usr/local"})
_MOST_LISTED = 20


def refuse_protected(prefix: Path, allow: Sequence[AllowName]) -> None:
    """Raise PreflightError for an environment that must stay as it is; `prefix` is a real path.

    Never repaired are envmedic's own environment and parts of the operating system. Base, frozen
    and externally managed environments are when `allow` names them.
    """
    if os.fspath(prefix) in _OPERATING_SYSTEM:
        raise PreflightError(
            f"{prefix} belongs to the operating system",
            cause="envmedic repairs environments; this one holds the system's own programs",
            hint="Create a virtual environment and name it with --prefix",
        )
    if _is_own(prefix):
        raise PreflightError(
            f"{prefix} is the Python that envmedic itself runs from",
            cause="It cannot exchange the files that it is running from",
            hint="Install envmedic into an environment of its own, for example with `uv tool install`",
        )
    for name, reason in _protections(prefix):
        if name not in allow:
            raise PreflightError(f"{prefix} is protected", cause=reason, hint=f"Use --allow {name} if you mean it")


def refuse_in_use(prefix: Path, processes: Sequence[ProcessUser], allow: Sequence[AllowName]) -> None:
    """Raise EnvironmentBusy, with each process in `details`, when programs run from `prefix`."""
    if not processes or "in-use" in allow:
        return
    listed = tuple(f"{item.pid} {item.command} ({item.why})" for item in processes[:_MOST_LISTED])
    more = len(processes) - len(listed)
    raise EnvironmentBusy(
        f"{prefix} is in use by {len(processes)} running process{'es' * (len(processes) > 1)}",
        cause="They would mix old modules in memory with new ones on disk",
        hint="End them, or use --allow in-use and restart them afterwards",
        details=(*listed, *((f"and {more} more",) if more else ())),
    )


def _is_own(prefix: Path) -> bool:
    homes = (sys.prefix, sys.base_prefix, os.fspath(Path(sys.executable).parent.parent))
    return os.fspath(prefix) in {os.path.realpath(home) for home in homes}


def _protections(prefix: Path) -> tuple[tuple[AllowName, str], ...]:
    found: list[tuple[AllowName, str]] = []
    conda = (prefix / "conda-meta").is_dir()
    if conda and any((prefix / name).is_dir() for name in ("condabin", "pkgs", "envs")):
        found.append(("base", "It is a conda base environment, which holds conda itself"))
    if (prefix / "conda-meta" / "frozen").exists():
        found.append(("frozen", "conda-meta/frozen marks it as frozen"))
    if not (prefix / "pyvenv.cfg").exists():
        if list(prefix.glob("lib/python*/EXTERNALLY-MANAGED")):
            found.append(("external", "EXTERNALLY-MANAGED says that another tool manages it"))
        elif not conda:
            found.append(("base", "It is a Python installation, not an environment made from one"))
    return tuple(found)
