"""Host compilers and compute capabilities of each nvcc, by the data on CUDA toolkits. Pure."""

from __future__ import annotations

import re
from typing import Literal

from envmedic.compat import gpu, tables

_MAJOR = re.compile(r"(?:^|, )(\d+)")


def compiler_limit(cuda: str, kind: Literal["gcc", "clang"]) -> int | None:
    """Newest major version of gcc or clang that the nvcc of CUDA ``major.minor`` accepts, None when unknown.

    Where updates of a toolkit differ, the limit of the last update.
    """
    toolkit = tables.toolkits().get(cuda)
    accepted = toolkit.host_compiler_max if toolkit is not None else None
    if accepted is None:
        return None
    majors = _MAJOR.findall(accepted.gcc if kind == "gcc" else accepted.clang)
    # one cell has the limits of all updates of a toolkit, and later updates accept newer compilers
    return max(map(int, majors)) if majors else None


def nvcc_knows(cuda: str, architecture: str) -> bool | None:
    """Whether the nvcc of CUDA ``major.minor`` compiles for ``8.6`` or ``9.0a``, None for an unknown toolkit."""
    toolkit = tables.toolkits().get(cuda)
    return None if toolkit is None else gpu.nvrtc_knows(toolkit, architecture.rstrip("af"))
