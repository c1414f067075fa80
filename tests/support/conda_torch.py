"""A miniature of torch as conda builds it: its library needs MKL from the environment."""

from __future__ import annotations

from pathlib import Path

from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY
from tests.support.wheels import Wheel, make_wheel

MKL = "libmkl_intel_thread.so.2"
_WITH_PROFILER = "int iJIT_NotifyEvent(void) { return 1; }\nint mkl_threads(void) { return 2; }\n"
_WITHOUT = "int mkl_threads(void) { return 2; }\n"
_CPU = """
extern int iJIT_NotifyEvent(void);
extern int mkl_threads(void);
int torch_threads(void) { return mkl_threads() + (iJIT_NotifyEvent() > 1); }
"""
_EXTENSION = "extern int torch_threads(void);\nint torch_start(void) { return torch_threads(); }\n"
_INIT = '''\
"""A miniature of torch: it counts threads, and nothing else."""

import ctypes
import os

from torch.version import __version__

_here = os.path.dirname(__file__)
ctypes.CDLL(os.path.join(_here, "lib", "libtorch_cpu.so"), mode=ctypes.RTLD_GLOBAL)
_C = ctypes.CDLL(os.path.join(_here, "_C.cpython-miniature.so"))


def get_num_threads():
    return _C.torch_start()
'''


def torch_wheel(directory: Path) -> Wheel:
    """torch 2.2.2 in a CPU build that was linked with an MKL that has Intel's profiler in it."""
    cpu = shared_library(_CPU, name="libtorch_cpu.so", needs=((MKL, _WITH_PROFILER),), rpath="$ORIGIN/../../../..")
    extension = shared_library(
        _EXTENSION,
        name="_C.so",
        needs=(("libtorch_cpu.so", "int torch_threads(void) { return 0; }"),),
        rpath="$ORIGIN/lib",
    )
    files: dict[str, str | bytes] = {
        "torch/__init__.py": _INIT,
        "torch/version.py": "__version__ = '2.2.2'\ndebug = False\ncuda = None\ngit_version = 'miniature'\nhip = None\n",
        "torch/lib/libtorch_cpu.so": cpu,
        "torch/_C.cpython-miniature.so": extension,
    }
    return make_wheel(directory, "torch", "2.2.2", files=files, tags=PLATFORM_TAGS, summary=SUMMARY)


def mkl_wheel(directory: Path, version: str, *, profiler: bool) -> Wheel:
    """MKL, as its wheel lays it out: libraries in the ``lib`` of the environment."""
    library = shared_library(_WITH_PROFILER if profiler else _WITHOUT, name=MKL)
    files = {f"mkl-{version}.data/data/lib/{MKL}": library}
    return make_wheel(directory, "mkl", version, files=files, tags=PLATFORM_TAGS, summary=SUMMARY)
