"""Builds the broken environment of this case from miniature wheels. See README.md."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.support.grid import PROGRAM, grid_wheel, plot_wheel
from tests.support.native_case import NativeCase, build_native


def build(room: Path) -> tuple[NativeCase, Path]:
    """Build the environment, and the directory of another Python's packages that PYTHONPATH will name."""
    directory = room / "wheels"
    old = grid_wheel(directory, "1.2")
    made = [old, grid_wheel(directory, "1.5"), plot_wheel(directory)]
    case = build_native(room, made, ["grid==1.5", "plot"], PROGRAM)
    elsewhere = room / "cluster" / "lib" / "site-packages"
    with zipfile.ZipFile(old.path) as wheel:
        wheel.extractall(elsewhere, [name for name in wheel.namelist() if name.startswith("grid/")])
    return case, elsewhere
