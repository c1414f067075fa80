"""Builds the broken environments of this case from miniature wheels with a real shared library. See README.md."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.grid import PROGRAM, grid_wheel, plot_wheel
from tests.support.native_case import NativeCase, build_native
from tests.support.venvs import site_packages


def build(room: Path) -> NativeCase:
    """Build the environment in which nothing is wrong yet."""
    made = [grid_wheel(room / "wheels", "1.5"), plot_wheel(room / "wheels")]
    return build_native(room, made, ["grid", "plot"], PROGRAM)


def _package(case: NativeCase) -> Path:
    return site_packages(case.prefix) / "grid"


def replace(path: Path, content: bytes) -> None:
    """Write `content` in place of a file, as a new file."""
    path.unlink()
    path.write_bytes(content)


def without_module(case: NativeCase) -> None:
    """Delete a module, as an uninstall of something else may."""
    (_package(case) / "shapes.py").unlink()


def without_init(case: NativeCase) -> None:
    """Delete the package's own ``__init__.py``: what is left is importable, and empty."""
    (_package(case) / "__init__.py").unlink()


def cut_library(case: NativeCase) -> None:
    """Cut the library off, as a disk that ran full leaves it: the loader maps what is not there, and is killed."""
    library = _package(case) / "libcells.so"
    replace(library, library.read_bytes()[:5000])


def cut_short(case: NativeCase) -> None:
    """Cut the library off within its header, which the loader notices."""
    library = _package(case) / "libcells.so"
    replace(library, library.read_bytes()[:40])


def cut_source(case: NativeCase) -> None:
    """Cut a module off in the middle of a line."""
    module = _package(case) / "core.py"
    replace(module, module.read_bytes()[:-30])


def emptied(case: NativeCase) -> None:
    """Empty a module, as a crash of the machine leaves what was not on disk yet."""
    replace(_package(case) / "shapes.py", b"")


def without_package(case: NativeCase) -> None:
    """Delete the whole package and keep its metadata, so that installers take it for installed."""
    shutil.rmtree(_package(case))


BROKEN: Mapping[str, Callable[[NativeCase], None]] = {
    item.__name__: item
    for item in (without_module, without_init, cut_library, cut_short, cut_source, emptied, without_package)
}
"""Ways to break it, each of which the user's program shows."""
