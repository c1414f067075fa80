"""Builds the broken environment of this case from miniature wheels. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native_case import NativeCase, build_native
from tests.support.repairs import pure, torch

PROGRAM = "import xformers\n\nprint('attention')\n"
WORKS = "attention\n"
BUILT_FOR = {"0.0.28.post1": "2.4.1", "0.0.29.post1": "2.5.1"}
CODE = """
import torch

if torch.__version__.partition('+')[0] != 'TORCH':
    raise RuntimeError(
        "xFormers can't load C++/CUDA extensions. xFormers was built for:\\n"
        f"    PyTorch TORCH+cu124 with CUDA 1204 (you have {torch.__version__})"
    )
"""


def build(room: Path) -> NativeCase:
    """An environment with torch 2.5.1 and the xformers of torch 2.4.1."""
    directory = room / "wheels"
    wheels = [torch(directory)]
    wheels += [
        pure(directory, "xformers", version, CODE.replace("TORCH", built), requires=(f"torch=={built}",))
        for version, built in BUILT_FOR.items()
    ]
    return build_native(room, wheels, ["torch", "xformers==0.0.28.post1"], PROGRAM)
