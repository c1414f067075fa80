"""Compiles small shared libraries for wheels, with the system's gcc."""

from __future__ import annotations

import subprocess
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

PLATFORM_TAGS = (f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}",)
"""Wheel tags of a distribution that has compiled parts."""


@cache
def shared_library(source: str, *, name: str, needs: tuple[tuple[str, str], ...] = (), rpath: str = "") -> bytes:
    """The bytes of a shared library with soname `name`, compiled from C.

    `needs` are pairs of soname and the C source of what is linked; `rpath` may hold ``$ORIGIN``. Symbols may stay
    undefined.
    """
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        for soname, needed in needs:
            _compile(directory, needed, soname, [])
        linked = [f"-l:{soname}" for soname, _ in needs]
        search = [f"-Wl,-rpath,{rpath}"] if rpath else []
        _compile(directory, source, name, [f"-L{directory}", "-Wl,--no-as-needed", *linked, *search])
        return (directory / name).read_bytes()


def _compile(directory: Path, source: str, name: str, more: list[str]) -> None:
    file = directory / f"{name}.c"
    file.write_text(source, encoding="utf-8")
    command = ["gcc", "-shared", "-fPIC", "-O1", "-w", f"-Wl,-soname,{name}", "-o", str(directory / name), str(file)]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
