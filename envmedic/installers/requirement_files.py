"""What a requirements file asks for by name. https://pip.pypa.io/en/stable/reference/requirements-file-format/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from envmedic.errors import InputError

_NESTED = re.compile(r"(?:-r|--requirement)[ =]?\s*(\S+)")
_OPTION = re.compile(r"\s--?[a-z][a-z-]*[= ].*")
_COMMENT = re.compile(r"(^|\s)#.*")


def requirements(path: str) -> tuple[Requirement, ...]:
    """The requirements in the file at `path` and in those that it names. Raises InputError for one that cannot be read.

    URLs, paths and editable projects are left out where they say no name.
    """
    return tuple(_read(Path(path), set()))


def _read(path: Path, seen: set[Path]) -> Iterator[Requirement]:
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    for line in _lines(path):
        nested = _NESTED.fullmatch(line)
        if nested is not None:
            yield from _read(path.parent / nested[1], seen)
            continue
        try:
            yield Requirement(_OPTION.sub("", line))
        except InvalidRequirement:
            continue  # an option, a path or a URL: uv reads these by itself


def _lines(path: Path) -> Iterator[str]:
    """Logical lines: comments gone, continued ones joined."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"The requirements file {path} cannot be read",
            cause=str(getattr(error, "strerror", None) or error),
            hint="Name a file on this machine",
        ) from error
    joined = re.sub(r"\\\r?\n", " ", text)
    stripped = (_COMMENT.sub("", line).strip() for line in joined.splitlines())
    return (line for line in stripped if line)
