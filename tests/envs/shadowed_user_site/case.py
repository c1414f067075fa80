"""Builds the broken environment of this case from miniature wheels. See README.md."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path

from tests.support.grid import PROGRAM, grid_wheel, plot_wheel
from tests.support.index import write_index
from tests.support.native_case import NativeCase
from tests.support.wheels import Wheel

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
HIDDEN, HOME = "1.5", "1.2"


def build(room: Path) -> NativeCase:
    """Build an environment laid out as conda's are, and an older `grid` in the home directory."""
    directory = room / "wheels"
    old, new, plot = grid_wheel(directory, HOME), grid_wheel(directory, HIDDEN), plot_wheel(directory)
    prefix = _interpreter(room / "env")
    for wheel in (new, plot):
        _unpack(wheel, prefix / "lib" / VERSION / "site-packages", installer="pip")
    _unpack(old, room / ".local" / "lib" / VERSION / "site-packages", installer="pip")
    program = room / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    index = write_index(room / "index", [old, new, plot])
    return NativeCase(room=room, prefix=prefix, program=program, index=index)


def _interpreter(prefix: Path) -> Path:
    """A Python with a prefix of its own: its program is copied, its standard library is linked."""
    library = prefix / "lib" / VERSION
    (library / "site-packages").mkdir(parents=True)
    standard = Path(os.__file__).parent
    for entry in standard.iterdir():
        if entry.name not in {"site-packages", "EXTERNALLY-MANAGED", "__pycache__"}:
            (library / entry.name).symlink_to(entry)
    (prefix / "bin").mkdir()
    shutil.copy2(os.path.realpath(sys.executable), prefix / "bin" / VERSION)
    (prefix / "bin" / "python").symlink_to(VERSION)
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / "history").touch()
    return prefix


def _unpack(wheel: Wheel, site: Path, *, installer: str) -> None:
    with zipfile.ZipFile(wheel.path) as archive:
        archive.extractall(site)
        record = next(name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
    (site / record).with_name("INSTALLER").write_text(f"{installer}\n", encoding="utf-8")
