"""Builds the broken environment of this case from miniature wheels with real shared libraries. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.wheels import Wheel, make_wheel

ROOM = """
__attribute__((tls_model("initial-exec"))) __thread char room[1200];
char *own_room(void) { return room; }
"""
SKLEARN = '''\
"""A miniature of scikit-learn: it brings GNU's OpenMP runtime, and needs it."""

import ctypes
import os

_LIBS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "scikit_learn.libs")
ctypes.CDLL(os.path.join(_LIBS, "libgomp-a34b3233.so.1.0.0"))
'''
PYARROW = '''\
"""A miniature of pyarrow: it uses jemalloc where that can be loaded, and another allocator otherwise."""

import ctypes
import os

try:
    ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libjemalloc.so.2"))
except OSError:
    allocator = "system"
else:
    allocator = "jemalloc"
'''
PROGRAM = "import pyarrow\nimport sklearn\n\nprint('allocator:', pyarrow.allocator)\n"


def wheels(directory: Path) -> list[Wheel]:
    """Every wheel of the case."""
    sklearn: dict[str, str | bytes] = {
        "sklearn/__init__.py": SKLEARN,
        "scikit_learn.libs/libgomp-a34b3233.so.1.0.0": shared_library(ROOM, name="libgomp.so.1"),
    }
    pyarrow: dict[str, str | bytes] = {
        "pyarrow/__init__.py": PYARROW,
        "pyarrow/libjemalloc.so.2": shared_library(ROOM, name="libjemalloc.so.2"),
    }
    return [
        make_wheel(directory, "scikit-learn", "1.5.2", files=sklearn, tags=PLATFORM_TAGS, summary=SUMMARY),
        make_wheel(directory, "pyarrow", "18.1.0", files=pyarrow, tags=PLATFORM_TAGS, summary=SUMMARY),
    ]


def build(room: Path) -> NativeCase:
    """Build the environment."""
    return build_native(room, wheels(room / "wheels"), ["scikit-learn", "pyarrow"], PROGRAM)
