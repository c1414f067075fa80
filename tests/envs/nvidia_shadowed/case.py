"""Builds an environment and a directory of older CUDA libraries that LD_LIBRARY_PATH leads to. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.cuda_family import CUDNN_OPS, JITLINK, broken
from tests.support.native import shared_library
from tests.support.native_case import NativeCase


def build(room: Path) -> tuple[NativeCase, str]:
    """An environment in which nothing is wrong, and a value of LD_LIBRARY_PATH that breaks it."""
    case = broken(room)
    toolkit = room / "cuda-12.1" / "lib64"
    toolkit.mkdir(parents=True)
    (toolkit / "libnvJitLink.so.12").write_bytes(
        shared_library(JITLINK["12.1.105"], name="libnvJitLink.so.12", rpath="$ORIGIN")
    )
    return case, f"{toolkit}:{room}/others"


def other_cudnn(room: Path) -> str:
    """A directory with a part of another cuDNN."""
    folder = room / "cudnn" / "lib"
    folder.mkdir(parents=True)
    part = shared_library(CUDNN_OPS["9.5.1.17"] + " char more[9000] = {1};", name="libcudnn_ops.so.9", rpath="$ORIGIN")
    (folder / "libcudnn_ops.so.9").write_bytes(part)
    return str(folder)
