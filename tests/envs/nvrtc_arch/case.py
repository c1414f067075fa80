"""Builds the broken environment of this case: a torch whose run-time compiler does not know the GPU. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.envs.no_kernel_image.case import GpuCase
from tests.envs.no_kernel_image.case import build as build_gpu_case
from tests.support.gpu_family import Build

_CODE = ("7.0", "7.5", "8.0", "8.6", "9.0", "10.0", "12.0")
CU128 = Build("2.8.0", "12.8", _CODE)
CU129 = Build("2.8.0", "12.9", _CODE, ("12.0",))


def build(room: Path, *capabilities: str) -> GpuCase:
    """torch 2.8.0 in its default variant, for a node with GPUs of these `capabilities`."""
    return build_gpu_case(room, *capabilities, installed=CU128, others=(CU128, CU129))
