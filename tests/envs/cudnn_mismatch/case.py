"""Builds the broken environments of this case from miniature wheels with real shared libraries. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.cuda_family import broken
from tests.support.native_case import NativeCase

NEWER, OVERWRITTEN = "nvidia-cudnn-cu12==9.5.1.17", "nvidia-cudnn-cu11==9.5.1.17"


def build(room: Path, pin: str) -> NativeCase:
    """Build the environment with another cuDNN installed over torch's."""
    return broken(room, then=[pin])
