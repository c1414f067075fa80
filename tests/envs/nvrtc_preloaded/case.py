"""Builds an environment, and libraries that LD_PRELOAD puts into its programs. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.cuda_family import PROGRAM, REFUSING_NVRTC, broken
from tests.support.native import shared_library
from tests.support.native_case import NativeCase


def build(room: Path) -> tuple[NativeCase, Path, Path]:
    """An environment in which nothing is wrong, an older NVRTC, and a library that is nobody's business."""
    case = broken(room)
    case.program.write_text(PROGRAM.replace("torch.jit()", "torch.compile_kernel()"), encoding="utf-8")
    folder = room / "cuda-11.8" / "lib64"
    folder.mkdir(parents=True)
    old, harmless = folder / "libnvrtc.so.12", room / "libharmless.so"
    old.write_bytes(shared_library(REFUSING_NVRTC, name=old.name))
    harmless.write_bytes(shared_library("int harmless;", name=harmless.name))
    return case, old, harmless
