"""Replacement of files in an environment: by rename, so that hard links elsewhere keep the old content."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def replace(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically, with the mode of the previous file."""
    mode = path.stat().st_mode & 0o7777 if path.is_file() else 0o644
    fresh = path.with_name(f".{path.name}.envmedic")
    # A killed helper may have left one; O_EXCL below then never follows a link that someone put there.
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        # The mode of os.open is subject to the umask.
        os.fchmod(descriptor, mode)
    fresh.replace(path)


def replace_json(path: Path, document: dict[str, Any]) -> None:
    """Write JSON as conda writes its records: sorted keys, two spaces."""
    replace(path, json.dumps(document, indent=2, sort_keys=True).encode())
