"""Whether interpreter, library directory, pyvenv.cfg and activation scripts belong together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from envmedic.model.facts import Defect, Interpreter
from envmedic.probe.layout import Layout
from envmedic.probe.packages.distributions import Scan
from envmedic.probe.readable import is_directory, read_text

_ACTIVATED = re.compile(r"^\s*VIRTUAL_ENV=(['\"]?)(?P<path>/[^'\"\n$`]*)\1\s*$", re.MULTILINE)
"""The assignment in ``bin/activate`` of venv, virtualenv and uv."""
_VENVS = frozenset({"venv", "virtualenv", "uv"})
_LARGEST = 1 << 20


def observe(found: Layout, python: Interpreter, scans: Sequence[Scan]) -> Iterator[Defect]:
    """Yield what does not belong together; nothing about an interpreter that does not start, which is told elsewhere."""
    if python.starts:
        yield from _version(found, python, scans)
        if python.lacks:
            yield Defect(kind="standard-library", path=python.base_prefix or "", detail=", ".join(python.lacks))
    yield from _configuration(found, python)
    yield from _moved(found)


def _version(found: Layout, python: Interpreter, scans: Sequence[Scan]) -> Iterator[Defect]:
    """Packages that lie in the library directory of another Python than the one that starts."""
    own = "python" + ".".join((python.version or "").split(".")[:2])
    served = [library for library in found.libraries if library.rstrip("t") == own]
    others = [library for library in found.libraries if library.rstrip("t") != own]
    count = sum(len(scan.installed) for scan in scans)
    if python.version is not None and found.libraries and not served and count:
        detail = f"Python {python.version} starts, and the {count} distributions lie in lib/{others[-1]}"
        yield Defect(kind="interpreter-version", path=f"lib/{others[-1]}", detail=detail)


def _configuration(found: Layout, python: Interpreter) -> Iterator[Defect]:
    """pyvenv.cfg: gone, though the interpreter is that of a virtual environment, or with a dead `home`."""
    home = found.settings.get("home")
    if found.kind in _VENVS and home is None:
        yield Defect(kind="pyvenv", path="pyvenv.cfg", detail="names no `home`, the directory of the base Python")
    elif home is not None and not is_directory(Path(home)):
        yield Defect(kind="pyvenv", path="pyvenv.cfg", detail=f"its `home` {home} does not exist")
    elif found.kind == "system" and python.starts and (found.prefix / "bin" / "activate").is_file():
        detail = "is gone: the base Python starts, without the packages of this environment"
        yield Defect(kind="pyvenv", path="pyvenv.cfg", detail=detail)


def _moved(found: Layout) -> Iterator[Defect]:
    """A virtual environment whose activation script names another directory, which no longer is this one."""
    text = read_text(found.prefix / "bin" / "activate", _LARGEST) if found.kind in _VENVS else None
    match = _ACTIVATED.search(text or "")
    if match is not None and not _same(match["path"], found.prefix):
        detail = f"it was made at {match['path']}: its scripts and activation name that directory"
        yield Defect(kind="moved", path="bin/activate", detail=detail)


def _same(stated: str, prefix: Path) -> bool:
    return os.path.realpath(stated) == os.path.realpath(prefix)
