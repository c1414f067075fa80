"""Builds an environment with a program that opens CUDA's libraries by name. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.cuda_family import build as build_family
from tests.support.native_case import NativeCase, build_native
from tests.support.wheels import make_wheel

CTRANSLATE2 = """\
import ctypes


def translate():
    try:
        return ctypes.CDLL("libcudnn.so.9").cudnnGetVersion()
    except OSError:
        raise RuntimeError("Library libcudnn.so.9 is not found or cannot be loaded") from None
"""
PROGRAM = "import ctranslate2\n\nprint('cuDNN', ctranslate2.translate())\n"


def build(room: Path) -> NativeCase:
    """The environment: ctranslate2 and NVIDIA's wheel, without torch."""
    pins = build_family(room).pins
    program = make_wheel(room / "wheels", "ctranslate2", "4.5.0", files={"ctranslate2.py": CTRANSLATE2})
    return build_native(room, [*pins.values(), program], ["nvidia-cudnn-cu12==9.1.0.70", "ctranslate2"], PROGRAM)
