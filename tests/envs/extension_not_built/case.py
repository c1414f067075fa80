"""Builds the broken environment of this case from a source that is compiled in part. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.envs.stale_extension.case import install_from
from tests.support.native_case import NativeCase, build_native
from tests.support.torch_modules import OLDER, PROGRAM, build_tools, project, torch_wheel

SYMBOL = "_Z13box_area_cudaii"
CALLER = f"int {SYMBOL}(int w, int h);\nint box_area(int w, int h) {{ return {SYMBOL}(w, h); }}\n"
KERNEL = f"int {SYMBOL}(int w, int h) {{ return w * h; }}\n"
SOURCES = '["box.c", *(["box_cuda.c"] if os.environ.get("CUDA_HOME") or os.environ.get("FORCE_CUDA") else [])]'
"""As setup.py files choose: the CUDA half only where a toolkit is seen."""


def build(room: Path, *, seen: bool = False) -> NativeCase:
    """box-ops built where a CUDA toolkit is `seen` or not. The project chooses its files as many do."""
    folder = room / "wheels"
    case = build_native(room, [torch_wheel(folder, OLDER), *build_tools(folder)], [f"torch=={OLDER.version}"], PROGRAM)
    source = project(room / "src" / "box-ops", sources=SOURCES)
    (source / "box.c").write_text(CALLER, encoding="utf-8")
    (source / "box_cuda.c").write_text(KERNEL, encoding="utf-8")
    install_from(case, source, **({"FORCE_CUDA": "1"} if seen else {}))
    return case
