"""Writing files of an environment as new ones: another name of the same file elsewhere keeps the old content."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def replace(path: Path, content: bytes) -> None:
    """Put `content` at `path`, whole or not at all, with the mode of the file that was there."""
    mode = path.stat().st_mode & 0o7777 if path.is_file() else 0o644
    fresh = path.with_name(f".{path.name}.envmedic")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor
        file.write(content)
        os.fchmod(descriptor, mode)
    fresh.replace(path)


def replace_json(path: Path, document: dict[str, Any]) -> None:
    """As conda writes its records: keys sorted, two spaces."""
    replace(path, json.dumps(document, indent=2, sort_keys=True).encode())
