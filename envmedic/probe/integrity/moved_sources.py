"""Where the source of an editable install is now, by what the manifests near its former place say."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from envmedic.errors import require_spare
from envmedic.probe.readable import is_directory, read_text

_MANIFESTS: Final = ("pyproject.toml", "setup.cfg", "setup.py")
_NAME: Final = re.compile(r"""\bname\s*=\s*["']?([\w.-]+)""")
_NO_SOURCES: Final = frozenset({"node_modules", "site-packages", "__pycache__", "build", "dist"})
_DEPTH: Final = 4
"""Levels of directories that are looked through."""
_MOST: Final = 500
"""Directories that are looked through; the nearest come first."""
_LARGEST: Final = 1 << 20


def found(former: Path, name: str) -> str | None:
    """Return the nearest directory around `former` whose manifest has the (normalised) name of the distribution."""
    start = _start(former)
    near = _directories(start) if start is not None else iter(())
    return next((str(folder) for folder, files in near if _named(folder, files, name)), None)


def _start(former: Path) -> Path | None:
    """Mostly a source is renamed, or moved to another directory of the same project."""
    existing = next((folder for folder in former.parents if is_directory(folder)), None)
    if existing is None:
        return None
    start = existing.parent if existing == former.parent else existing
    # directly below the root lie other people's directories
    return next((folder for folder in (start, existing) if len(folder.parts) > 2), None)  # noqa: PLR2004


def _directories(start: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield directories with the names of their manifests, level by level."""
    left = deque([(start, 0)])
    for _ in range(_MOST):
        if not left:
            return
        folder, depth = left.popleft()
        try:
            with os.scandir(folder) as entries:
                items = sorted((item.name, item.is_dir(follow_symlinks=False)) for item in entries)
        except OSError as error:
            require_spare(error)
            continue
        yield folder, tuple(item for item, _ in items if item in _MANIFESTS)
        if depth < _DEPTH:
            below = (item for item, directory in items if directory and item not in _NO_SOURCES)
            left.extend((folder / item, depth + 1) for item in below if not item.startswith("."))


def _named(folder: Path, manifests: tuple[str, ...], name: str) -> bool:
    texts = (read_text(folder / manifest, _LARGEST) or "" for manifest in manifests)
    return any(canonicalize_name(match[1]) == name for text in texts for match in _NAME.finditer(text))
