"""Builds the broken environments of this case. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.grid import PROGRAM, grid_wheel, plot_wheel
from tests.support.native_case import NativeCase, build_native


def build(room: Path) -> NativeCase:
    """Build an environment whose Python was removed, of a release series that no host has."""
    made = [grid_wheel(room / "wheels", "1.5"), plot_wheel(room / "wheels")]
    case = build_native(room, made, ["grid", "plot"], PROGRAM)
    case.python.unlink()
    case.python.symlink_to(room / "gone" / "bin" / "python3")
    library = next((case.prefix / "lib").glob("python3*"))
    library.rename(library.with_name("python3.5"))
    return case
