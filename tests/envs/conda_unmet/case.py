"""Builds the broken environment of this case. See README.md."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from tests.conda.channel import channels
from tests.conda.room import Room, make_room
from tests.gallery.repair_gallery.conda.package import Package, write_channel
from tests.gallery.repair_gallery.conda.room import GRID
from tests.probe.prefixes import build_library

SITE = "lib/python3.11/site-packages"
_SONAME = "libsolve.so.1"


def build(root: Path, *, versioned: bool) -> tuple[Room, Path]:
    """A room, and in it an environment whose libsolve is older than its module `grid` needs.

    `versioned` libraries give their functions the name of a release, as OpenSSL and libtiff do.
    """
    own = write_channel(root / "own", _packages(root / "stage", versioned=versioned))
    room = make_room(root / "room", [channels().url("main"), own])
    prefix = room.by_rattler("lab", ["python=3.11", "pip", "grid"])
    room.force(prefix, "libsolve=1.4")
    return room, prefix


def _packages(stage: Path, *, versioned: bool) -> list[Package]:
    stage.mkdir(parents=True)
    found = []
    for version, code in (("1.4", "int solve(void) { return 1; }"), ("2.0", "int solve_threads(void) { return 2; }")):
        names = stage / "names.map"
        names.write_text(f"SOLVE_{version} {{ global: *; }};\n")
        named = (f"-Wl,--version-script={names}",) if versioned else ()
        library = build_library(stage / _SONAME, code, f"-Wl,-soname,{_SONAME}", *named)
        found.append(Package("libsolve", version, "h1a2b3c4_0", files={f"lib/{_SONAME}": library.read_bytes()}))
    search = f"-Wl,-rpath,$ORIGIN/{'../' * 3}lib"
    include = f"-I{sysconfig.get_path('include')}"
    module = build_library(stage / "grid.so", GRID, include, f"-L{stage}", f"-l:{_SONAME}", search)
    needs = ("python 3.11.*", "libsolve >=2.0,<3.0a0")
    files = {f"{SITE}/grid.cpython-311-x86_64-linux-gnu.so": module.read_bytes()}
    return [*found, Package("grid", "1.0", "py311_0", files=files, depends=needs)]
