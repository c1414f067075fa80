"""Builds the broken environment of this case from miniature wheels with real shared libraries. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.conda_torch import MKL, mkl_wheel, torch_wheel
from tests.support.native_case import NativeCase, build_native

PROGRAM = "import torch\n\nprint('threads:', torch.get_num_threads())\n"


def build(room: Path) -> NativeCase:
    """Build the environment, and delete MKL's library from it, as a disk that ran full leaves it."""
    directory = room / "wheels"
    made = [torch_wheel(directory), mkl_wheel(directory, "2024.0.0", profiler=True)]
    case = build_native(room, made, ["torch", "mkl"], PROGRAM)
    (case.prefix / "lib" / MKL).unlink()
    return case
