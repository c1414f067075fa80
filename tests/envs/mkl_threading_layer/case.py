"""Builds the broken environment of this case from miniature wheels. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.wheels import Wheel, make_wheel

SERVICE = '''\
"""A miniature of mkl-service: it looks which OpenMP runtime is loaded, and chooses MKL's threads."""

import os
import sys

layer = os.environ.get("MKL_THREADING_LAYER", "")
with open("/proc/self/maps") as maps:
    gnu = "libgomp" in maps.read()
if gnu and layer.upper() == "INTEL" and not os.environ.get("MKL_SERVICE_FORCE_INTEL"):
    sys.stderr.write(
        "Error: mkl-service + Intel(R) MKL: MKL_THREADING_LAYER=INTEL is incompatible with libgomp.so.1 library.\\n"
        "\\tTry to import numpy first or set the threading layer accordingly. Set MKL_SERVICE_FORCE_INTEL to force it.\\n"
    )
    sys.exit(1)
os.environ.setdefault("MKL_THREADING_LAYER", "GNU" if gnu else "INTEL")
'''
TORCH = '''\
"""A miniature of torch: it brings GNU's OpenMP runtime, and nothing else."""

import ctypes
import os

ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib", "libgomp-a34b3233.so.1"))
__version__ = "2.5.1"
'''
PROGRAM = """\
import subprocess
import sys

import numpy

subprocess.run([sys.executable, "-c", "import torch, numpy; print('worker done')"], check=True)
"""


def wheels(directory: Path) -> list[Wheel]:
    """Every wheel of the case."""
    gnu = shared_library("int omp_threads(void) { return 2; }", name="libgomp.so.1")
    torch: dict[str, str | bytes] = {
        "torch/__init__.py": TORCH,
        "torch/version.py": "__version__ = '2.5.1'\ncuda = None\nhip = None\n",
        "torch/lib/libgomp-a34b3233.so.1": gnu,
    }
    return [
        make_wheel(directory, "torch", "2.5.1", files=torch, tags=PLATFORM_TAGS, summary=SUMMARY),
        make_wheel(directory, "mkl-service", "2.4.1", files={"mkl/__init__.py": SERVICE}, summary=SUMMARY),
        make_wheel(
            directory,
            "numpy",
            "1.26.4",
            files={"numpy/__init__.py": "import mkl\n__version__ = '1.26.4'\n"},
            requires=["mkl-service"],
            summary=SUMMARY,
        ),
    ]


def build(room: Path) -> NativeCase:
    """Build the environment."""
    return build_native(room, wheels(room / "wheels"), ["torch", "mkl-service", "numpy"], PROGRAM)
