"""Builds the broken environments of this case from miniature wheels. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native_case import NativeCase, build_native
from tests.support.repairs import pure, torch

PROGRAM = "from triton import AttrsDescriptor\n\nprint('compiled')\n"
WORKS = "compiled\n"
PINS = 'triton==3.1.0; platform_system == "Linux"'


def build(room: Path, *installed: str) -> NativeCase:
    """An environment with a torch that requires one triton, and the `installed` one."""
    directory = room / "wheels"
    wheels = [
        torch(directory, requires=(PINS,)),
        pure(directory, "triton", "3.1.0", "class AttrsDescriptor:\n    pass\n"),
        pure(directory, "triton", "3.2.0", ""),
    ]
    return build_native(room, wheels, ["torch", *installed], PROGRAM)
