"""The folder in the user's cache in which checks keep byte code of an environment that comes without."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from envmedic import owner, xdg

KEPT = 4
"""Environments for which byte code is kept, those used last: 25 MB for torch alone, some 200 MB for all of a large one."""


def folder(prefix: Path) -> Path | None:
    """The folder of the environment at `prefix`, made where it is missing.

    None where it cannot be made, or where another user could put code into it: modules are compiled each time then.
    """
    root = xdg.cache() / "envmedic" / "byte-code"
    own = root / hashlib.sha256(os.fsencode(prefix)).hexdigest()[:32]
    try:
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        way = owner.way_to(own)
        if any(place.uid not in {0, os.geteuid()} or place.open for place in (*way.passed, *way.held)):
            return None
        os.utime(own)
        for other in sorted(root.iterdir(), key=lambda path: path.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(other, ignore_errors=True)  # another process may have begun to
    except OSError:
        return None
    return own
