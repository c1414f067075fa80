"""Distributions that requirements files name.

https://pip.pypa.io/en/stable/reference/requirements-file-format/
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from envmedic import limits
from envmedic.errors import InputError

_NESTED = re.compile(r"(?:-r|--requirement)[ =]?\s*(\S+)")
_EDITABLE = re.compile(r"(?:-e|--editable)[ =]")
_OPTION = re.compile(r"\s--?[a-z][a-z-]*[= ].*")
_COMMENT = re.compile(r"(^|\s)#.*")


def requirements(path: str) -> tuple[Requirement, ...]:
    """Requirements of the file at `path` and of the files that it includes. Raises InputError for an unreadable one.

    URLs, paths and editable projects without a name are left out.
    """
    found = map(_requirement, _every_line(Path(path), set()))
    return tuple(item for item in found if item is not None)


def has_editable(path: str) -> bool:
    """Whether the file at `path`, or one that it includes, asks for an editable project. Raises InputError."""
    return any(_EDITABLE.match(line) for line in _every_line(Path(path), set()))


def _every_line(path: Path, seen: set[Path]) -> Iterator[str]:
    """Lines of a file, with the lines of each included file at its place."""
    real = Path(os.path.realpath(path.as_posix().replace("\0", "")))  # realpath raises for NUL; reading reports it
    # Files may include each other; each counts once.
    if real in seen:
        return
    seen.add(real)
    for line in _lines(path):
        nested = _NESTED.fullmatch(line)
        if nested is None:
            yield line
        else:
            # Relative to the file that includes it, as in pip.
            yield from _every_line(path.parent / nested[1], seen)


def _requirement(line: str) -> Requirement | None:
    """None for an option, a path or a URL: uv reads these by itself."""
    try:
        # Options of a line (--hash, --config-settings) follow the requirement, and are no part of PEP 508.
        return limits.parsed(_OPTION.sub("", line))
    except InvalidRequirement:
        return None


def _lines(path: Path) -> Iterator[str]:
    """Logical lines: without comments, continued lines joined."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(
            f"The requirements file {path} cannot be read",
            cause=str(getattr(error, "strerror", None) or error),
            hint="Name a file on this machine",
        ) from error
    joined = re.sub(r"\\\r?\n", " ", text)
    stripped = (_COMMENT.sub("", line).strip() for line in joined.splitlines())
    return (line for line in stripped if line)
