"""Builds the broken environments of this case. See README.md."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.grid import PROGRAM, grid_wheel, plot_wheel
from tests.support.native_case import NativeCase, build_native
from tests.support.venvs import site_packages


def build(room: Path) -> NativeCase:
    """Build an environment in which a package that came from a source tree has lost a module."""
    made = [grid_wheel(room / "wheels", "1.5"), plot_wheel(room / "wheels")]
    case = build_native(room, made, ["grid", "plot"], PROGRAM)
    site = site_packages(case.prefix)
    origin = {"url": (room / "grid").as_uri(), "dir_info": {}}
    (site / "grid-1.5.dist-info" / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")
    (site / "grid" / "shapes.py").unlink()
    return case


def damage_conda(case: NativeCase) -> None:
    """Add a conda package of which one of two files is gone, and one is cut off."""
    listed = [
        {"_path": "lib/libgrid.so.1", "path_type": "hardlink", "size_in_bytes": 4000},
        {"_path": "lib/libcut.so.1", "path_type": "hardlink", "size_in_bytes": 4000},
        {"_path": "include/grid.h", "path_type": "hardlink", "size_in_bytes": 40},
    ]
    record = {"name": "libgrid", "version": "1.5", "paths_data": {"paths": listed}}
    (case.prefix / "conda-meta").mkdir()
    (case.prefix / "conda-meta" / "libgrid-1.5-0.json").write_text(json.dumps(record), encoding="utf-8")
    (case.prefix / "lib" / "libcut.so.1").write_bytes(b"\x7fELF")
