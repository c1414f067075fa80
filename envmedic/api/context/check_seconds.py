"""How long checks of an environment took before, kept in the user's cache.

A progress display estimates from it, and the import that took longest begins first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from envmedic import xdg

MOST_BYTES = 1 << 20


def _file(prefix: Path) -> Path:
    return xdg.cache() / "envmedic" / "check-seconds" / f"{hashlib.sha256(os.fsencode(prefix)).hexdigest()[:32]}.json"


def load(prefix: Path) -> dict[str, float]:
    """Seconds by the name of a check or import; nothing where none are kept, or not readably."""
    try:
        content = _file(prefix).read_bytes()[:MOST_BYTES]
        return msgspec.json.decode(content, type=dict[str, float])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def keep(prefix: Path, seconds: Mapping[str, float]) -> None:
    """Add newer ones; that nothing can be written there only makes the next display poorer."""
    path = _file(prefix)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(msgspec.json.encode(load(prefix) | dict(seconds)))
        fresh.replace(path)
