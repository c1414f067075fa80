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
from envmedic.tree import mounts

_ACTIVATED = re.compile(r"^\s*VIRTUAL_ENV=(['\"]?)(?P<path>/[^'\"\n$`]*)\1\s*$", re.MULTILINE)
"""The assignment in ``bin/activate`` of venv, virtualenv and uv."""
_SCRIPTS = ("pip", "pydoc3", "idle3", "2to3")
"""Scripts of conda's Python and pip, whose first line names the environment."""
_SHEBANG = re.compile(r"#!(?P<path>/[^\n]+)/bin/python[\d.]*\s*\n")
_CONFIGURED = re.compile(r"^[ {]*'prefix': '(?P<path>/[^'\n]+)',?$", re.MULTILINE)
"""The entry of ``_sysconfigdata*.py``, into which conda writes the path of the environment."""
_VENVS = frozenset({"venv", "virtualenv", "uv"})
_LARGEST = 1 << 20


def observe(found: Layout, homes: Sequence[Path], python: Interpreter, scans: Sequence[Scan]) -> Iterator[Defect]:
    """Yield what does not belong together; nothing about an interpreter that does not start, which is told elsewhere.

    `homes` are the paths by which the activation script may name the environment, its own first.
    """
    if python.starts:
        yield from _version(found, python, scans)
        if python.lacks:
            yield Defect(kind="standard-library", path=python.base_prefix or "", detail=", ".join(python.lacks))
    yield from _configuration(found, python)
    yield from _moved(found, homes)


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


def _moved(found: Layout, homes: Sequence[Path]) -> Iterator[Defect]:
    """An environment whose files name another directory, which no longer is this one."""
    stated = made_at(found)
    if stated is not None and not any(_same(stated, home) for home in homes):
        detail = f"it was made at {stated}: its scripts and activation name that directory"
        path = "bin/activate" if found.kind in _VENVS else "bin"
        yield Defect(kind="moved", path=path, detail=detail, names=stated, now=str(homes[0]))


def made_at(found: Layout) -> str | None:
    """Return the directory that the files of an environment name: its activation script, or what conda wrote it into."""
    if found.kind == "conda":
        return _linked_at(found)
    text = read_text(found.prefix / "bin" / "activate", _LARGEST) if found.kind in _VENVS else None
    match = _ACTIVATED.search(text or "")
    return match["path"].rstrip("/") if match is not None else None


def _linked_at(found: Layout) -> str | None:
    """Return the path that conda wrote into a script and into Python's own configuration, where both agree."""
    scripts = (read_text(found.prefix / "bin" / name, _LARGEST) for name in _SCRIPTS)
    named = next((match["path"] for text in scripts if text and (match := _SHEBANG.match(text))), None)
    if named is None or not found.libraries:
        return None
    for file in sorted((found.prefix / "lib" / found.libraries[-1]).glob("_sysconfigdata*.py")):
        match = _CONFIGURED.search(read_text(file, _LARGEST) or "")
        if match is not None and match["path"].rstrip("/") == named:
            return named
    return None


def seen_through_mount(found: Layout, home: Path) -> Path | None:
    """Return the directory where an environment was made that is seen at `home` through a bind mount, as in a container.

    Its files are right where it was made: it was not moved.
    """
    stated = made_at(found)
    if stated is None or _same(stated, home):
        return None
    try:
        outside = mounts.path_in_filesystem(Path(os.path.realpath(home)))
    except OSError:
        return None  # without /proc nothing tells of mounts
    # the host may have mounted the file system at a directory of its own
    return Path(stated) if outside is not None and stated.endswith(outside) else None


def _same(stated: str, prefix: Path) -> bool:
    """Whether both are one directory, also where it is mounted at two places."""
    try:
        return Path(stated).samefile(prefix)
    except OSError:
        return os.path.realpath(stated) == os.path.realpath(prefix)
