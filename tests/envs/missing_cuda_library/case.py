"""Builds the broken environments of this case from miniature wheels with real shared libraries. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.cuda_family import broken
from tests.support.native_case import NativeCase

WAYS = {
    "a wheel is not installed": {"without": "nvidia-cusparse-cu12"},
    "the wheel of the run-time compiler is not installed": {"without": "nvidia-cuda-nvrtc-cu12"},
    "a library that torch links is gone": {"deleted": "nvidia/cusparse/lib/libcusparse.so.12"},
    "a part that cuDNN opens later is gone": {"deleted": "nvidia/cudnn/lib/libcudnn_ops.so.9"},
}


def build(room: Path, way: str) -> NativeCase:
    """Build the environment, broken in one of `WAYS`."""
    return broken(room, **WAYS[way])
