"""Stand-ins for libstdc++ with the versions of one release or another, and a module that needs the newer one.

What the loader does with versions of symbols does not depend on what the library is: the sonames and version names are
the real ones' kind, with a number that no real copy has.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.native import PLATFORM_TAGS
from tests.support.native_case import SUMMARY
from tests.support.wheels import Wheel, make_wheel

SONAME = "libstdc++.so.6"
WANTED = "GLIBCXX_3.4.99"
_OLD = "GLIBCXX_3.4 { global: cxx_old; local: *; };\nGLIBCXX_3.4.19 { global: cxx_19; } GLIBCXX_3.4;\n"
_NEW = f"{_OLD}{WANTED} {{ global: cxx_99; }} GLIBCXX_3.4.19;\n"
_SOURCE = "int cxx_old(void) { return 1; } int cxx_19(void) { return 19; }"
PACKAGE = '''\
"""A miniature of a package whose module was compiled by a newer compiler."""

import ctypes
import os

try:
    _library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "_boxes.EXTENSION.so"))
except OSError as error:  # as the import of a module words it
    raise ImportError(str(error)) from None


def area(width, height):
    """Area of a box."""
    return _library.box_area(width, height)
'''
PROGRAM = "import boxes\n\nprint('area:', boxes.area(3, 4))\n"


@cache
def runtime(*, new: bool) -> bytes:
    """A copy of the library, with or without the wanted version."""
    source = _SOURCE + (" int cxx_99(void) { return 99; }" if new else "")
    return _compiled(source, SONAME, _NEW if new else _OLD)


@cache
def module(search: str) -> bytes:
    """A module that needs the wanted version, with `search` as its DT_RUNPATH."""
    source = "int cxx_99(void); int box_area(int w, int h) { return cxx_99() == 99 ? w * h : 0; }"
    return _compiled(source, "_boxes.so", None, linked=runtime(new=True), search=search)


def _compiled(source: str, name: str, script: str | None, *, linked: bytes = b"", search: str = "") -> bytes:
    with TemporaryDirectory() as folder:
        directory = Path(folder)
        (directory / "code.c").write_text(source, encoding="utf-8")
        command = ["gcc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{name}", "-o", str(directory / "out.so"), "code.c"]
        if script is not None:
            (directory / "versions").write_text(script, encoding="utf-8")
            command.append("-Wl,--version-script=versions")
        if linked:
            (directory / SONAME).write_bytes(linked)
            command += ["-L.", "-Wl,--no-as-needed", f"-l:{SONAME}"]
        if search:
            command.append(f"-Wl,--enable-new-dtags,-rpath,{search}")
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return (directory / "out.so").read_bytes()


def package(folder: Path, soabi: str, *, search: str = "") -> Wheel:
    """``boxes``, whose module has the interpreter's tag."""
    files: dict[str, str | bytes] = {
        "boxes/__init__.py": PACKAGE.replace("EXTENSION", soabi),
        f"boxes/_boxes.{soabi}.so": module(search),
    }
    return make_wheel(folder, "boxes", "1.0", files=files, tags=PLATFORM_TAGS, summary=SUMMARY)
