"""Builds the broken environments of this case from miniature wheels with real shared libraries. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.cuda_family import broken
from tests.support.native_case import NativeCase

OLDER, OVERWRITTEN = "an older nvJitLink", "the NCCL of another major version of CUDA over torch's"
WAYS = {OLDER: "nvidia-nvjitlink-cu12==12.1.105", OVERWRITTEN: "nvidia-nccl-cu11==2.14.3"}


def build(room: Path, way: str) -> NativeCase:
    """Build the environment, broken in one of `WAYS`."""
    return broken(room, then=[WAYS[way]])
