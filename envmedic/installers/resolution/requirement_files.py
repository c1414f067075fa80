"""What a requirements file asks for by name. https://pip.pypa.io/en/stable/reference/requirements-file-format/."""

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
    """The requirements in the file at `path` and in those that it names. Raises InputError for one that cannot be read.

    URLs, paths and editable projects are left out where they say no name.
    """
    found = map(_requirement, _every_line(Path(path), set()))
    return tuple(item for item in found if item is not None)


def has_editable(path: str) -> bool:
    """Whether the file at `path`, or one that it names, asks for an editable project. Raises InputError."""
    return any(_EDITABLE.match(line) for line in _every_line(Path(path), set()))


def _every_line(path: Path, seen: set[Path]) -> Iterator[str]:
    """The lines of a file, with those of the files that it names in their places."""
    real = Path(os.path.realpath(path.as_posix().replace("\0", "")))  # a name with NUL is refused by reading it
    if real in seen:
        return
    seen.add(real)
    for line in _lines(path):
        nested = _NESTED.fullmatch(line)
        if nested is None:
            yield line
        else:
            yield from _every_line(path.parent / nested[1], seen)


def _requirement(line: str) -> Requirement | None:
    """None for an option, a path or a URL: uv reads these by itself."""
    try:
        return limits.parsed(_OPTION.sub("", line))
    except InvalidRequirement:
        return None


def _lines(path: Path) -> Iterator[str]:
    """Logical lines: comments gone, continued ones joined."""
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
