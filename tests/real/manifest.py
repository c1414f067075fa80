"""Every entry of a tree with its content hash, mode and mtime: equality means byte for byte the same."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

Entry = tuple[str, int, int, int, str]
"""Kind, mode, mtime in ns, size, SHA-256 of the content or target of the link."""


def manifest(root: Path) -> dict[str, Entry]:
    """Return path relative to `root` → entry, for everything below it and for itself."""
    return {os.path.relpath(path, root): _entry(path) for path in _walk(root)}


def _walk(root: Path) -> Iterator[Path]:
    yield root
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            yield Path(directory, name)


def _entry(path: Path) -> Entry:
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        return ("link", info.st_mode, info.st_mtime_ns, 0, str(path.readlink()))
    if stat.S_ISDIR(info.st_mode):
        return ("directory", info.st_mode, info.st_mtime_ns, 0, "")
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _sha256(path)
    return ("file", info.st_mode, info.st_mtime_ns, info.st_size, content)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def changed(before: dict[str, Entry], after: dict[str, Entry]) -> set[str]:
    """Paths that were added, removed or differ; directories whose entries alone changed are left out."""
    paths = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    return {path for path in paths if not _only_entries(before.get(path), after.get(path))}


def _only_entries(before: Entry | None, after: Entry | None) -> bool:
    return before is not None and after is not None and before[0] == after[0] == "directory" and before[1] == after[1]
