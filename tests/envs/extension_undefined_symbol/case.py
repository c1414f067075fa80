"""Builds the broken environment of this case from miniature wheels with real shared libraries. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.native_case import NativeCase, build_native
from tests.support.torch_modules import NEWER, OLDER, PROGRAM, module_wheel, torch_wheel

FOR_OLDER, FOR_NEWER = "1.0+pt25cpu", "1.0+pt27cpu"


def build(room: Path, *, installed: str = FOR_NEWER) -> NativeCase:
    """torch 2.5.1 with the build of box-ops that is `installed`; both builds are on the index."""
    folder = room / "wheels"
    wheels = [
        torch_wheel(folder, OLDER),
        module_wheel(folder, FOR_OLDER, OLDER),
        module_wheel(folder, FOR_NEWER, NEWER),
    ]
    return build_native(room, wheels, [f"torch=={OLDER.version}", f"box-ops=={installed}"], PROGRAM)
