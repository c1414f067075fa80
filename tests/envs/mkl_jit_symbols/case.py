"""Builds the broken environment of this case from miniature wheels with real shared libraries. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.conda_torch import mkl_wheel, torch_wheel
from tests.support.native_case import NativeCase, build_native

PROGRAM = "import torch\n\nprint('threads:', torch.get_num_threads())\n"
BROKEN, REPAIRED = "2024.2.0", "2024.0.0"


def build(room: Path, *, mkl: str = BROKEN) -> NativeCase:
    """Build the environment with that release of MKL."""
    directory = room / "wheels"
    made = [
        torch_wheel(directory),
        mkl_wheel(directory, BROKEN, profiler=False),
        mkl_wheel(directory, REPAIRED, profiler=True),
    ]
    return build_native(room, made, ["torch", f"mkl=={mkl}"], PROGRAM)
