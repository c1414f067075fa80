"""Programs that distributions bring: console scripts, and programs in their own folders."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser, ParsingError
from pathlib import Path

import msgspec

from envmedic import safe_io
from envmedic.errors import require_spare
from envmedic.model.facts import Defect
from envmedic.probe.packages.distributions import Installed, Scan
from envmedic.probe.readable import read_text

_EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_LONGEST_SHEBANG = 512
_LARGEST = 1 << 20
_TARGET = re.compile(r"[\w.]+:[\w.]+")
_LONG = b"'''exec' "
"""Second line of scripts whose interpreter has a path too long for a first line."""


def observe(prefix: Path, homes: Sequence[Path], scans: Sequence[Scan], sizes: Mapping[str, int]) -> Iterator[Defect]:
    """Yield scripts that are gone, cannot be executed or name no interpreter, and programs that cannot be executed.

    `homes` are the paths by which scripts may name the environment.
    """
    own = tuple(dict.fromkeys(name for home in homes for name in (str(home), os.path.realpath(home))))
    for scan in scans:
        base = os.path.relpath(os.path.realpath(scan.site), os.path.realpath(prefix))
        for item in scan.installed:
            # an egg-info lists files of a source tree; conda removes and rewrites scripts by its own records
            if item.distribution.metadata_path.endswith(".dist-info") and item.distribution.owner != "conda":
                yield from _of_one(prefix, own, base, item, sizes)


def _of_one(
    prefix: Path, own: tuple[str, ...], base: str, item: Installed, sizes: Mapping[str, int]
) -> Iterator[Defect]:
    # one search of the joined text spares a test of each of thousands of paths
    if "bin/" not in "\n".join(item.paths):
        return
    name = item.distribution.name
    for recorded in item.paths:
        folder, _, file = recorded.rpartition("/")
        if folder.rpartition("/")[2] != "bin" or file.endswith((".py", ".pyc", ".so")):
            continue
        path = os.path.normpath(f"{base}/{recorded}")
        script = recorded.startswith("../")
        found = None if path.startswith("../") else _wrong(prefix, own, path, script=script, present=path in sizes)
        if found is not None:
            metadata = prefix / item.distribution.metadata_path
            target = _entry_point(metadata, file) if script and found.kind == "program" else None
            yield msgspec.structs.replace(found, distribution=name, entry_point=target)


def _wrong(prefix: Path, own: tuple[str, ...], path: str, *, script: bool, present: bool) -> Defect | None:
    """Why a program cannot be started; None for one that can, and for data in a folder of that name."""
    file = prefix / path
    if not present and not script:
        return None
    try:
        mode = file.stat().st_mode
    except OSError as error:
        require_spare(error)
        return Defect(kind="program", path=path, detail="is gone")
    head = _head(file)
    # a script in a package's folder is its own data: wheels hold many that are never executed
    if not head.startswith((b"\x7fELF", b"#!") if script else b"\x7fELF"):
        return None
    if not mode & _EXECUTE:
        return Defect(kind="program-mode", path=path, detail="is not executable")
    return _dead(prefix, own, path, head) if script and head.startswith(b"#!") else None


def _entry_point(metadata: Path, script: str) -> str | None:
    """The function that a script of this name calls, by the distribution's entry points."""
    parser = ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names of scripts keep their case
    try:
        parser.read_string(read_text(metadata / "entry_points.txt", _LARGEST) or "")
    except ParsingError:
        return None
    for group in ("console_scripts", "gui_scripts"):
        target = parser.get(group, script, fallback="").partition("[")[0].strip()
        if _TARGET.fullmatch(target):
            return target
    return None


def _head(file: Path) -> bytes:
    try:
        with safe_io.opened(file) as opened:
            return opened.read(_LONGEST_SHEBANG)
    except OSError as error:
        require_spare(error)
        return b""


def _dead(prefix: Path, own: tuple[str, ...], path: str, head: bytes) -> Defect | None:
    """The interpreter of a script's first line, where it does not serve it."""
    first, _, rest = head.partition(b"\n")
    words = (rest.removeprefix(_LONG) if rest.startswith(_LONG) else first[2:]).split()
    interpreter = words[0].decode("utf-8", "replace").strip("'\"") if words else ""
    home = next((home for home in own if interpreter.startswith(f"{home}/")), None)
    # a copy of an environment names the original, whose files may be in another state
    file = str(prefix / interpreter[len(home) + 1 :]) if home is not None else interpreter
    if file.startswith("/") and not os.path.exists(file):  # noqa: PTH110  # never raises
        detail = f"is run by {interpreter}, which does not exist"
        return Defect(kind="program", path=path, detail=detail, names=interpreter)
    other = home is None and not os.path.realpath(Path(interpreter).parent.parent).startswith(own)
    if "/bin/python" in interpreter and other:
        detail = f"is run by {interpreter}, the Python of another environment"
        return Defect(kind="program", path=path, detail=detail, names=interpreter)
    return None
