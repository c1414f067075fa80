"""Programs that distributions bring: console scripts, and programs in their own folders."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envmedic import safe_io
from envmedic.errors import require_spare
from envmedic.model.facts import Defect
from envmedic.probe.packages.distributions import Installed, Scan

_EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_LONGEST_SHEBANG = 512
_LONG = b"'''exec' "
"""Second line of scripts whose interpreter has a path too long for a first line."""


def observe(prefix: Path, scans: Sequence[Scan], sizes: Mapping[str, int]) -> Iterator[Defect]:
    """Yield scripts that are gone, cannot be executed or name no interpreter, and programs that cannot be executed."""
    for scan in scans:
        base = os.path.relpath(os.path.realpath(scan.site), os.path.realpath(prefix))
        for item in scan.installed:
            # an egg-info lists files of a source tree; conda removes and rewrites scripts by its own records
            if item.distribution.metadata_path.endswith(".dist-info") and item.distribution.owner != "conda":
                yield from _of_one(prefix, base, item, sizes)


def _of_one(prefix: Path, base: str, item: Installed, sizes: Mapping[str, int]) -> Iterator[Defect]:
    # one search of the joined text spares a test of each of thousands of paths
    if "bin/" not in "\n".join(item.paths):
        return
    name = item.distribution.name
    for recorded in item.paths:
        folder, _, file = recorded.rpartition("/")
        if folder.rpartition("/")[2] != "bin" or file.endswith((".py", ".pyc", ".so")):
            continue
        path = os.path.normpath(f"{base}/{recorded}")
        wrong = _wrong(prefix, path, script=recorded.startswith("../"), present=path in sizes)
        if wrong:
            yield Defect(kind="program", path=path, distribution=name, detail=wrong)


def _wrong(prefix: Path, path: str, *, script: bool, present: bool) -> str:
    """Why a program cannot be started; empty for one that can, and for data in a folder of that name."""
    file = prefix / path
    if path.startswith("../") or (not present and not script):
        return ""
    try:
        mode = file.stat().st_mode
    except OSError as error:
        require_spare(error)
        return "is gone"
    head = _head(file)
    if not head.startswith((b"\x7fELF", b"#!")):
        return ""
    if not mode & _EXECUTE:
        return "is not executable"
    return _dead(prefix, head) if script and head.startswith(b"#!") else ""


def _head(file: Path) -> bytes:
    try:
        with safe_io.opened(file) as opened:
            return opened.read(_LONGEST_SHEBANG)
    except OSError as error:
        require_spare(error)
        return b""


def _dead(prefix: Path, head: bytes) -> str:
    """Why the interpreter of a script's first line does not serve it."""
    first, _, rest = head.partition(b"\n")
    words = (rest.removeprefix(_LONG) if rest.startswith(_LONG) else first[2:]).split()
    interpreter = words[0].decode("utf-8", "replace").strip("'\"") if words else ""
    if interpreter.startswith("/") and not os.path.exists(interpreter):  # noqa: PTH110  # never raises
        return f"is run by {interpreter}, which does not exist"
    own = os.path.realpath(prefix)
    if "/bin/python" in interpreter and not os.path.realpath(Path(interpreter).parent.parent).startswith(own):
        return f"is run by {interpreter}, the Python of another environment"
    return ""
