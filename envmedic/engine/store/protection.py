"""Protected environments: never repaired, or only with ``--allow``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from envmedic.conda_meta import pins_and_marks
from envmedic.errors import EnvironmentBusy, PreflightError
from envmedic.model.ports import ProcessUser
from envmedic.model.registries.modes import AllowName

_OPERATING_SYSTEM = frozenset({"/", "/usr", "/usr/local"})
_MOST_LISTED = 20


def refuse_protected(prefix: Path, allow: Sequence[AllowName]) -> None:
    """Raise PreflightError for an environment that must stay as it is; `prefix` is a real path.

    Never repaired are envmedic's own environment and parts of the operating system. Base, frozen
    and externally managed environments are when `allow` names them, which the error's `allow` says.
    """
    for error in refusals(prefix):
        if error.allow is None or error.allow not in allow:
            raise error


def refusals(prefix: Path) -> Iterator[PreflightError]:
    """Yield the error for each reason for which an environment must stay as it is; `prefix` is a real path.

    The error's `allow` says what lifts it.
    """
    if os.fspath(prefix) in _OPERATING_SYSTEM:
        yield PreflightError(
            f"{prefix} belongs to the operating system",
            cause="envmedic repairs environments; this one holds the system's own programs",
            hint="Create a virtual environment and name it with --prefix",
        )
    if _is_own(prefix):  # running code would be exchanged under this process, `undo` included
        yield PreflightError(
            f"{prefix} is the Python that envmedic itself runs from",
            cause="It cannot exchange the files that it is running from",
            hint="Install envmedic into an environment of its own, for example with `uv tool install 'envmedic[repair]'`",
        )
    for protection in _protections(prefix):
        error = PreflightError(f"{prefix} is protected", cause=protection.cause, hint=protection.hint)
        error.allow = protection.allow
        yield error


def refuse_in_use(prefix: Path, processes: Sequence[ProcessUser], allow: Sequence[AllowName]) -> None:
    """Raise EnvironmentBusy, with each process in `details`, when programs run from `prefix`."""
    if not processes or "in-use" in allow:
        return
    listed = tuple(f"{item.pid} {item.command} ({item.why})" for item in processes[:_MOST_LISTED])
    more = len(processes) - len(listed)
    error = EnvironmentBusy(
        f"{prefix} is in use by {len(processes)} running process{'es' * (len(processes) > 1)}",
        cause="What runs from it would mix old modules in memory with new ones on disk",
        hint="End what runs, or use --allow in-use and restart it afterwards",
        details=(*listed, *((f"and {more} more",) if more else ())),
    )
    error.allow = "in-use"
    raise error


def _is_own(prefix: Path) -> bool:
    homes = (sys.prefix, sys.base_prefix, os.fspath(Path(sys.executable).parent.parent))
    return os.path.realpath(prefix) in {os.path.realpath(home) for home in homes}


@dataclass(frozen=True)
class _Protection:
    """Why an environment must stay as it is."""

    allow: AllowName
    """What lifts it."""
    cause: str
    way: str | None = None
    """What works for such an environment instead."""

    @property
    def hint(self) -> str:
        lift = f"--allow {self.allow} if you mean it"
        return f"{self.way}, or use {lift}" if self.way else f"Use {lift}"


def _protections(prefix: Path) -> Iterator[_Protection]:
    if (prefix / "conda-meta").is_dir():
        yield from _of_conda(prefix)
    if (prefix / "pyvenv.cfg").exists():
        return
    if list(prefix.glob("lib/python*/EXTERNALLY-MANAGED")):
        yield _Protection("external", "EXTERNALLY-MANAGED says that another tool manages it")
    elif not (prefix / "conda-meta").is_dir():
        yield _Protection("base", "It is a Python installation, not an environment made from one")


def _of_conda(prefix: Path) -> Iterator[_Protection]:
    if any((prefix / name).is_dir() for name in ("condabin", "pkgs", "envs")):
        cause = "It is a conda base environment, which holds conda itself"
        yield _Protection("base", cause, "Work in an environment of your own (`conda create -n NAME …`)")
    mark = _frozen(prefix)
    if mark is not None:
        told = f": {mark.message}" if mark.message else ""
        yield _Protection("frozen", f"conda-meta/frozen marks it as frozen{told}")
    project = pins_and_marks.project(prefix)
    if project is not None:
        told = f" of {project.folder}" if project.folder else ""
        cause = f"{project.tool} keeps it as the manifest and the lock{told} say, and undoes what others change"
        yield _Protection("external", cause, _way(project))


def _frozen(prefix: Path) -> pins_and_marks.Frozen | None:
    """The mark, also where it is there and cannot be read."""
    try:
        return pins_and_marks.frozen(prefix)
    except OSError:
        return pins_and_marks.Frozen()


def _way(project: pins_and_marks.CondaProject) -> str:
    """The command that changes a package of it."""
    name = project.environment
    if project.tool == "conda-workspaces":
        return f"Change it with `conda workspace add PACKAGE` in {project.folder}"
    if project.folder is None:
        return f"Change it with `pixi global add --environment {name} PACKAGE`"
    return f"Change it with `pixi add PACKAGE` (or `pixi reinstall --environment {name}`) in {project.folder}"
