"""Builds the broken environments of this case from miniature wheels. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native_case import SUMMARY, NativeCase, build_native
from tests.support.repairs import pure, torch
from tests.support.wheels import Wheel, make_wheel

PROGRAM = "import bitsandbytes\n\nprint('8 bits')\n"
WORKS = "8 bits\n"
OPENS = """
import os

import torch.version

_NUMBER = torch.version.cuda.replace('.', '')
_LIBRARY = os.path.join(os.path.dirname(__file__), f'libbitsandbytes_cuda{_NUMBER}.so')
if not os.path.exists(_LIBRARY):
    raise RuntimeError(f'Could not find the bitsandbytes CUDA binary at {_LIBRARY!r}')
"""
CALLS_TRITON = "import triton.ops\n"


def bitsandbytes(directory: Path, version: str, numbers: tuple[str, ...], code: str = OPENS) -> Wheel:
    """A release with a library for each CUDA release of `numbers`."""
    files: dict[str, str | bytes] = {f"bitsandbytes/libbitsandbytes_cuda{number}.so": b"" for number in numbers}
    files["bitsandbytes/__init__.py"] = f'"""{SUMMARY}."""\n{code}'
    return make_wheel(directory, "bitsandbytes", version, files=files, requires=("torch",), summary=SUMMARY)


def build(room: Path, *installed: str) -> NativeCase:
    """An environment with torch for CUDA 12.4 and the `installed` pins."""
    directory = room / "wheels"
    wheels = [
        torch(directory, "2.6.0", requires=("triton==3.2.0",)),
        pure(directory, "triton", "3.2.0", ""),
        bitsandbytes(directory, "0.42.0", ("121", "122")),
        bitsandbytes(directory, "0.44.1", ("121", "124"), CALLS_TRITON),
        bitsandbytes(directory, "0.45.5", ("121", "124", "126")),
    ]
    return build_native(room, wheels, ["torch", "triton", *installed], PROGRAM)
