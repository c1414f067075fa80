"""Builds an environment with a torch for the CPU, and an index that has it for CUDA as well. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.cuda_family import nvidia_wheels, torch_wheel
from tests.support.native_case import NativeCase, build_native
from tests.support.wheels import make_wheel

PROGRAM = """\
import torch

if torch.version.cuda is None:
    raise AssertionError("Torch not compiled with CUDA enabled")
print("CUDA", torch.version.cuda)
"""


def build(room: Path, *, companion: bool = False) -> NativeCase:
    """Build the environment; with `companion`, a distribution is installed that is of use only beside CUDA."""
    folder = room / "wheels"
    cpu = torch_wheel(folder, "2.5.1+cpu", cuda=None)
    wheels = [cpu, torch_wheel(folder), *nvidia_wheels(folder), make_wheel(folder, "cupy-cuda12x", "13.3.0")]
    installed = [cpu.requirement, *(["cupy-cuda12x"] if companion else [])]
    return build_native(room, wheels, installed, PROGRAM)
