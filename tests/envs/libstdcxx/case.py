"""Builds the broken environment of this case: an old library in its own lib directory. See README.md."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from tests.support.cxx_runtime import PROGRAM, SONAME, package, runtime
from tests.support.native_case import NativeCase, build_native

SEARCH = "$ORIGIN/../../.."
"""From the module to the ``lib`` of the prefix."""


def build(room: Path, *, new: bool = False) -> NativeCase:
    """boxes, whose module finds the library in the ``lib`` of the prefix: one that is `new` enough or not."""
    soabi = str(sysconfig.get_config_var("SOABI"))
    case = build_native(room, [package(room / "wheels", soabi, search=SEARCH)], ["boxes"], PROGRAM)
    (case.prefix / "lib" / SONAME).write_bytes(runtime(new=new))
    return case
