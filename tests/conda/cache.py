"""Things that are made once and used by every later test run: kept under a key of what made them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent / ".pytest_cache" / "d" / "conda"


def kept(name: str, parts: Iterable[str | Path], make: Callable[[Path], None]) -> Path:
    """The directory that `make` filled, now or in an earlier run.

    It is kept under `name` and a digest of `parts` (texts, and files by content), of this interpreter, and of this
    machine's users: so a changed source makes it anew. Parallel workers wait for the first.
    """
    target = _root() / f"{name}-{_digest(parts)}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            for stale in target.parent.glob(f"{name}-*"):
                if stale.is_dir():
                    shutil.rmtree(stale)
            unfinished = target.with_name(f"{target.name}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)  # of a run that was stopped
            make(unfinished)
            unfinished.rename(target)
    return target


def _root() -> Path:
    return Path(os.environ.get("ENVMEDIC_TEST_CACHE") or ROOT)


def _digest(parts: Iterable[str | Path]) -> str:
    seen = hashlib.sha256(f"{sys.version} {os.getuid()}".encode())
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode()
        seen.update(hashlib.sha256(data).digest())
    return seen.hexdigest()[:12]
