"""Builds the broken environments of this case from miniature wheels. See README.md."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.native_case import NativeCase, build_native
from tests.support.repairs import pure, torch

PROGRAM = "import torchaudio\n\nprint('heard')\n"
CODEC = "import torchcodec\n\nprint('decoded')\n"
TORCH, OTHER, CUDA = ("2.5.1", "2.4.1", "12.4") if sys.version_info < (3, 13) else ("2.9.1", "2.8.0", "12.8")
"""A torch that has wheels for this Python, and the one before it."""
FITS, FITS_OTHER = ("0.1.1", "0.0.3") if TORCH == "2.5.1" else ("0.9.1", "0.7.0")
"""Releases of torchcodec that belong to them."""
BOUND = """
import torch

if torch.__version__.partition('+')[0] != 'TORCH':
    raise OSError('lib/libtorchaudio.so: undefined symbol: _ZNK5torch8autograd4Node4nameB5cxx11Ev')
"""


def build(room: Path, *installed: str, program: str = PROGRAM) -> NativeCase:
    """An environment with torch and the `installed` pins of companions."""
    directory = room / "wheels"
    wheels = [torch(directory, TORCH, CUDA)]
    for version, codec in ((TORCH, FITS), (OTHER, FITS_OTHER)):
        code = BOUND.replace("TORCH", version)
        wheels.append(pure(directory, "torchaudio", version, code, requires=(f"torch=={version}",)))
        wheels.append(pure(directory, "torchcodec", codec, code))
    return build_native(room, wheels, ["torch", *installed], program)
