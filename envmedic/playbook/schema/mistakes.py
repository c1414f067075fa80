"""Mistakes of a playbook file, which are collected so that its author sees all of them at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import msgspec

Key = str | int
Path = tuple[Key, ...]


class Position(msgspec.Struct, frozen=True, order=True):
    """A place in a file, both numbers 1-based."""

    line: int
    column: int


START = Position(1, 1)


class PlaybookMistake(msgspec.Struct, frozen=True):
    """One mistake with its position."""

    position: Position
    path: Path
    message: str

    def render(self, file: str) -> str:
        """``file:line:column: key.path[2]: message``."""
        where = f"{file}:{self.position.line}:{self.position.column}"
        return f"{where}: {key_path(self.path)}: {self.message}" if self.path else f"{where}: {self.message}"


def key_path(path: Sequence[Key]) -> str:
    """``signatures[2].pattern`` for ``("signatures", 2, "pattern")``."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


def suggestion(word: str, known: Iterable[str]) -> str:
    """`` (did you mean ``x``?)`` with near matches of `word`, or nothing."""
    near = difflib.get_close_matches(word, sorted(known), n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(near)}?)" if near else ""
