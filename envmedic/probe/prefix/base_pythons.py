"""Pythons of the host that can take the place of the one that a virtual environment was made with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from envmedic.owner import identity, way_to
from envmedic.probe.layout import Layout
from envmedic.probe.prefix import unnamed
from envmedic.probe.readable import names
from envmedic.proc import ask, without_others

_TIMEOUT_S = 20.0
_KINDS = frozenset({"venv", "virtualenv", "uv"})
_QUESTION = "import sys, ssl, zlib, ctypes, venv; print(sys.version_info[:2] == {wanted}, sys._base_executable or sys.executable)"
"""With the parts of the standard library that minimal installations lack."""


def replacement(layout: Layout, *, by_itself: bool = True) -> str | None:
    """A Python of the host with the release series of the environment's packages; None where there is none.

    Without `by_itself`, only programs count that may answer for an environment that nobody named.
    Compiled modules are made for one series (3.11), and run in each of its releases.
    """
    if layout.kind not in _KINDS or len(layout.libraries) != 1 or layout.libraries[0].endswith("t"):
        return None
    name = layout.libraries[0]
    wanted = tuple(map(int, name.removeprefix("python").split(".")))
    found = _candidates(layout, name)
    if not by_itself:
        found = (real for path in found if (real := unnamed.outside_python(path, layout.prefix)) is not None)
    return next((python for path in found if (python := _asked(path, wanted))), None)


def _candidates(layout: Layout, name: str) -> Iterator[Path]:
    """Programs of that name, each once: where the former one was, on PATH, and where uv and pyenv put theirs."""
    home = Path(os.environ.get("HOME", "/"))
    folders = [Path(layout.settings.get("home", "/nonexistent"))]
    folders += [Path(item) for item in os.environ.get("PATH", "").split(os.pathsep) if item.startswith("/")]
    folders += [Path("/usr/bin"), Path("/usr/local/bin")]
    series = name.removeprefix("python") + "."
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    for root, prefix in ((data / "uv/python", f"cpython-{series}"), (home / ".pyenv/versions", series)):
        folders += [root / entry / "bin" for entry in sorted(names(root), reverse=True) if entry.startswith(prefix)]
    seen = set()
    for folder in folders:
        path = folder / name
        real = os.path.realpath(path)
        if path.is_file() and real not in seen and not Path(real).is_relative_to(os.path.realpath(layout.prefix)):
            seen.add(real)
            if not _of_others(path):
                yield path


def _of_others(path: Path) -> bool:
    """Whether this process is root, and another user can exchange the program: root neither starts it nor leads to it."""
    return os.geteuid() == 0 and identity(way_to(path)) != (None, None)


def _asked(path: Path, wanted: tuple[int, ...]) -> str | None:
    """The base interpreter behind a program, where it is of the `wanted` series and complete."""
    argv = [str(path), "-I", "-S", "-B", "-c", _QUESTION.format(wanted=wanted)]
    try:
        result = ask(argv, env={**without_others(), "LC_ALL": "C"}, cwd="/", timeout_s=_TIMEOUT_S)
    except OSError:
        return None
    said, _, python = result.stdout.strip().partition(" ")
    good = result.returncode == 0 and said == "True" and python.startswith("/")
    return python if good and not _of_others(Path(python)) else None
