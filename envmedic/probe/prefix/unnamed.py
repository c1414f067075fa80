"""The environment of a project that nobody named or activated: which one is taken, and the Python that answers for it.

A checkout or an archive may bring a prepared environment. So nothing in it is run: a Python of the host answers in its
place, or its files alone are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from envmedic import xdg
from envmedic.errors import NotAnEnvironment
from envmedic.owner import Waypoint, way_to
from envmedic.probe import layout
from envmedic.probe.prefix import finder
from envmedic.probe.readable import is_file

WITHIN = (*finder.PROJECT_VENVS, ".pixi/envs/default", ".conda/envs/default")
"""Where a project keeps its environment."""
_PYTHON = re.compile(r"(?:python|pypy)(?:\d+(?:\.\d+)?)?t?")
_SHARED = frozenset(
    {"/", "/home", "/media", "/mnt", "/opt", "/srv", "/tmp", "/usr", "/usr/local", "/usr/src", "/var", "/var/tmp"}  # noqa: S108
)
"""Directories that hold the files of several programs or people, and that no archive brings as a whole."""


def candidates(folder: Path, variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the environments that the project around `folder` keeps, of the nearest directory that has any."""
    for above in (folder, *folder.parents):
        stated = variables.get("UV_PROJECT_ENVIRONMENT")
        if stated and any(is_file(above / name) for name in ("uv.lock", "pyproject.toml")):
            place = Path(os.path.normpath(above / stated))
            if is_environment(place):
                return (place,)  # uv then has no other
        found = tuple(path for name in WITHIN if is_environment(path := above / name))
        if found:
            return found
    return ()


def is_environment(prefix: Path) -> bool:
    """Whether `prefix` is an environment, and not the root of the file system."""
    try:
        layout.read_layout(prefix)
    except NotAnEnvironment:
        return False
    return os.path.realpath(prefix) != "/"


def is_owned(prefix: Path) -> bool:
    """Whether the caller and root alone can change the environment, or exchange it."""
    parts = (prefix, prefix / "bin", prefix / "pyvenv.cfg", prefix / "conda-meta")
    return all(_safe(way.passed) for part in parts if os.path.lexists(part) for way in (way_to(part),)) and all(
        os.lstat(part).st_uid in {0, os.geteuid()} for part in parts if os.path.lexists(part)
    )


def outside_python(python: Path, prefix: Path) -> Path | None:
    """Return the program that `python` of the environment leads to, where it may answer in its place; else None.

    It belongs to root or the caller, nobody else can exchange it, and it did not come with the project.
    """
    real = Path(os.path.realpath(python))
    if not _PYTHON.fullmatch(real.name) or not is_file(real):
        return None
    if any(real.is_relative_to(folder) for folder in _brought(prefix)):
        return None
    # shims are scripts: which program they run depends on files of the project
    return real if _safe(way_to(real).passed) and _is_program(real) else None


def _is_program(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _safe(passed: tuple[Waypoint, ...]) -> bool:
    return all(item.uid in {0, os.geteuid()} and not item.open for item in passed)


def _brought(prefix: Path) -> Iterator[Path]:
    """The outermost directories that may have come with the environment, by its path and by where this leads."""
    home = os.path.realpath(xdg.home(os.environ))
    for place in (Path(os.path.abspath(prefix)).parent, Path(os.path.realpath(prefix))):  # noqa: PTH100  # keeps links
        real = Path(os.path.realpath(place))
        above = (folder for folder in reversed((real, *real.parents)) if str(folder) not in _SHARED)
        # the first directory below a home or of the caller: the project may be deep in what an archive brought
        yield next(
            (
                folder
                for folder in above
                if not Path(home).is_relative_to(folder)
                and (folder.is_relative_to(home) or folder.stat().st_uid == os.geteuid())
            ),
            real,
        )
