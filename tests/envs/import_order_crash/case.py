"""Builds the broken environment of this case from miniature wheels with real shared libraries. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.wheels import Wheel, make_wheel

FIRST = "void *shared_allocator;\n"
SECOND = """
static int allocate(void) { return 1; }
int (*shared_allocator)(void) = allocate;
__attribute__((constructor)) static void start(void) { shared_allocator(); }
"""
MODULE = """\
import ctypes
import os

ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib{name}.so"), mode={mode})
"""
PROGRAM = "import numexpr\nimport pyarrow\nimport open3d\n\nprint('shapes')\n"


def wheels(directory: Path) -> list[Wheel]:
    """Every wheel of the case: open3d crashes after pyarrow, and numexpr has no part in it."""
    made = []
    for name, source, mode in (
        ("pyarrow", FIRST, "ctypes.RTLD_GLOBAL"),
        ("open3d", SECOND, "ctypes.RTLD_LOCAL"),
        ("numexpr", "int none;", "ctypes.RTLD_LOCAL"),
    ):
        files: dict[str, str | bytes] = {
            f"{name}/__init__.py": MODULE.format(name=name, mode=mode),
            f"{name}/lib{name}.so": shared_library(source, name=f"lib{name}.so"),
        }
        made.append(make_wheel(directory, name, "1.0", files=files, tags=PLATFORM_TAGS, summary=SUMMARY))
    return made


def build(room: Path) -> NativeCase:
    """Build the environment."""
    return build_native(room, wheels(room / "wheels"), ["pyarrow", "open3d", "numexpr"], PROGRAM)
