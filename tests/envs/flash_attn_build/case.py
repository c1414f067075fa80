"""Builds the broken environment of this case from miniature wheels with a real compiled module. See README.md."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.wheels import make_wheel

PROGRAM = "import torch\nimport flash_attn_2_cuda\n"
MODULE = """
#include "INCLUDE/Python.h"
extern void _ZN3c105ErrorC2ENS_14SourceLocationESs(void);
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "flash_attn_2_cuda", "", -1, NULL};
PyMODINIT_FUNC PyInit_flash_attn_2_cuda(void) {
    _ZN3c105ErrorC2ENS_14SourceLocationESs();
    return PyModule_Create(&definition);
}
"""
C10 = "void _ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(void) {}"
TORCH = {
    "torch/__init__.py": f'"""{SUMMARY}."""\n\nimport ctypes\nimport os\n\n'
    "ctypes.CDLL(os.path.join(os.path.dirname(__file__), 'lib', 'libc10.so'), mode=ctypes.RTLD_GLOBAL)\n",
    "torch/version.py": "__version__ = '2.5.1+cu124'\ndebug = False\ncuda = '12.4'\ngit_version = '0'\nhip = None\n",
}


def build(room: Path) -> NativeCase:
    """An environment with a flash-attn that needs a symbol which torch has in another form."""
    directory, suffix = room / "wheels", str(sysconfig.get_config_var("EXT_SUFFIX"))
    source = MODULE.replace("INCLUDE", sysconfig.get_path("include"))
    torch: dict[str, str | bytes] = {**TORCH, "torch/lib/libc10.so": shared_library(C10, name="libc10.so")}
    attention: dict[str, str | bytes] = {
        "flash_attn/__init__.py": f'"""{SUMMARY}."""\n',
        f"flash_attn_2_cuda{suffix}": shared_library(
            source, name=f"flash_attn_2_cuda{suffix}", needs=(("libc10.so", C10),)
        ),
    }
    wheels = [
        make_wheel(directory, "torch", "2.5.1", files=torch, tags=PLATFORM_TAGS, summary=SUMMARY),
        make_wheel(directory, "flash-attn", "2.6.3", files=attention, tags=PLATFORM_TAGS, summary=SUMMARY),
    ]
    return build_native(room, wheels, ["torch", "flash-attn"], PROGRAM)
