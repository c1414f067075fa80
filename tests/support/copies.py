"""Copies of environments that were built once: to build one takes half a second, to copy it a hundredth of that."""

from __future__ import annotations

import atexit
import csv
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support.wheels import record_hash

NAME = "env"
"""Of each template, which activation scripts have: an environment of another name is no copy of one."""
_PLAIN = re.compile(r"[\w./-]{1,80}", re.ASCII)
"""Paths of which the first line of a script has the form that it has for a template's."""
_templates: dict[tuple[int, object], Path] = {}


def copied(key: object, build: Callable[[Path], object], directory: Path) -> None:
    """Have in `directory` what ``build(directory)`` makes, built once for each `key` by this process."""
    if not _PLAIN.fullmatch(str(directory)) or not _PLAIN.fullmatch(tempfile.gettempdir()):
        build(directory)
        return
    owned = (os.getpid(), key)
    if owned not in _templates:
        root = Path(tempfile.mkdtemp(prefix="template-"))
        atexit.register(_remove, root, os.getpid())
        build(root / NAME)
        _templates[owned] = root / NAME
    template = _templates[owned]
    directory.mkdir(parents=True, exist_ok=True)
    for path in template.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, directory / path.name, symlinks=True)
        else:
            shutil.copy2(path, directory / path.name, follow_symlinks=False)
    _relocate(directory, str(template).encode(), str(directory).encode())


def _remove(root: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(root)


def _relocate(directory: Path, old: bytes, new: bytes) -> None:
    """Replace the path in every file, and what each RECORD states of such files; times stay."""
    changed = {str(path) for path in _files(directory) if _replace(path, old, new)}
    for record in directory.rglob("*.dist-info/RECORD"):
        site = record.parent.parent
        rows = list(csv.reader(record.read_text(encoding="utf-8").splitlines()))
        stated = {row[0]: os.path.normpath(site / row[0]) for row in rows if row[1]}
        if changed.isdisjoint(stated.values()):
            continue
        lines = [_row(row, stated[row[0]]) if stated.get(row[0]) in changed else ",".join(row) for row in rows]
        _write(record, ("\n".join(lines) + "\n").encode())


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()]


def _replace(path: Path, old: bytes, new: bytes) -> bool:
    content = path.read_bytes()
    if old in content:
        _write(path, content.replace(old, new))
    return old in content


def _row(row: list[str], path: str) -> str:
    content = Path(path).read_bytes()
    return f"{row[0]},{record_hash(content)},{len(content)}"


def _write(path: Path, content: bytes) -> None:
    status = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
