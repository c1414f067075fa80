"""Small wheels of one family: `grid`, which brings a compiled library, and `plot`, which requires it."""

from __future__ import annotations

from pathlib import Path

from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY
from tests.support.wheels import Wheel, make_wheel

PROGRAM = "import plot\n\nprint(plot.title())\n"


def grid_wheel(directory: Path, version: str) -> Wheel:
    """A package of several modules, a compiled library and tests of its own."""
    library = shared_library("int cells(void) { return 4; }\n" + "char room[70000];\n", name="libcells.so")
    files: dict[str, str | bytes] = {
        "grid/__init__.py": f'"""{SUMMARY}."""\n\nfrom grid.core import cells\n\n__version__ = {version!r}\n',
        "grid/core.py": (
            '"""The compiled half."""\n\nimport ctypes\nimport pathlib\n\n'
            "LIBRARY = ctypes.CDLL(str(pathlib.Path(__file__).with_name('libcells.so')))\n\n\n"
            "def cells():\n    return LIBRARY.cells()\n"
        ),
        "grid/shapes.py": "def square(side):\n    return side * side\n",
        "grid/libcells.so": library,
        "grid/tests/__init__.py": "",
        "grid/tests/test_core.py": "def test_cells():\n    pass\n",
    }
    return make_wheel(directory, "grid", version, files=files, summary=SUMMARY, tags=PLATFORM_TAGS)


def plot_wheel(directory: Path, requires: str = "grid<2") -> Wheel:
    """A package that requires `grid`, and looks its version up as many do when they are imported."""
    files = {
        "plot.py": (
            "import importlib.metadata\n\nimport grid\nimport grid.shapes\n\n\n"
            "def title():\n"
            "    version = importlib.metadata.version('grid')\n"
            "    assert version == grid.__version__, f'grid {grid.__version__} is imported, {version} is installed'\n"
            "    return f'{grid.shapes.square(2)} of {grid.cells()} cells by grid {version}'\n"
        )
    }
    return make_wheel(directory, "plot", "1.0", files=files, requires=[requires], summary=SUMMARY)
