"""Builds the broken environments of this case from miniature wheels. See README.md."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.grid import PROGRAM, grid_wheel, plot_wheel
from tests.support.native_case import NativeCase, build_native
from tests.support.venvs import site_packages

OLD, NEW = "1.5", "2.0"


def build(room: Path) -> NativeCase:
    """Build the environment in which nothing is wrong yet: `plot` asks for the old `grid`."""
    directory = room / "wheels"
    made = [grid_wheel(directory, OLD), grid_wheel(directory, NEW), plot_wheel(directory)]
    return build_native(room, made, [f"grid=={OLD}", "plot"], PROGRAM)


def _info(case: NativeCase, version: str = OLD) -> Path:
    return site_packages(case.prefix) / f"grid-{version}.dist-info"


def two_copies(case: NativeCase) -> None:
    """Put another release over it that knows nothing of the first, as a second installer does."""
    with zipfile.ZipFile(next((case.room / "wheels").glob(f"grid-{NEW}-*.whl"))) as wheel:
        for name in wheel.namelist():
            (site_packages(case.prefix) / name).unlink(missing_ok=True)
        wheel.extractall(site_packages(case.prefix))


def interrupted_uninstall(case: NativeCase) -> None:
    """Rename half of it, as pip does before it deletes, and stop there."""
    site = site_packages(case.prefix)
    _info(case).rename(site / f"~rid-{OLD}.dist-info")
    (site / "~rid").mkdir()
    for name in ("core.py", "shapes.py"):
        (site / "grid" / name).rename(site / "~rid" / name)


def renamed_away(case: NativeCase) -> None:
    """Rename all of it, as pip does before it installs the next version, and stop there."""
    site = site_packages(case.prefix)
    _info(case).rename(site / f"~rid-{OLD}.dist-info")
    (site / "grid").rename(site / "~rid")


def metadata_gone(case: NativeCase) -> None:
    """Delete its metadata alone: the code stays, and nobody knows which version it is."""
    shutil.rmtree(_info(case))


def emptied_metadata(case: NativeCase) -> None:
    """Delete the content of its metadata, so that its version is None to whoever asks."""
    for file in _info(case).iterdir():
        file.unlink()


def put_first(case: NativeCase) -> None:
    """Add a path file that puts a directory with another release before everything that is installed."""
    elsewhere = case.room / "elsewhere"
    with zipfile.ZipFile(next((case.room / "wheels").glob(f"grid-{NEW}-*.whl"))) as wheel:
        wheel.extractall(elsewhere, [name for name in wheel.namelist() if name.startswith("grid/")])
    hook = site_packages(case.prefix) / "elsewhere.pth"
    hook.write_text(f"import sys; sys.path.insert(0, {str(elsewhere)!r})\n", encoding="utf-8")


BROKEN: Mapping[str, Callable[[NativeCase], None]] = {
    item.__name__: item
    for item in (two_copies, interrupted_uninstall, renamed_away, metadata_gone, emptied_metadata, put_first)
}
"""Ways to break it, each of which the user's program shows."""
