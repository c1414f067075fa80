"""Command lines as people type them: cells of notebooks, sudo, and commands of which no part is about this environment. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import NamedTuple

_SUDO_VALUES = frozenset({"-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-D", "-R", "-T"})
_NEAR = 0.6


class Typed(NamedTuple):
    """A line without what stands around its command."""

    words: tuple[str, ...]
    notes: tuple[str, ...] = ()
    sudo: bool = False


def stripped(words: Sequence[str]) -> Typed:
    """Return the command of a cell of a notebook (``!pip``, ``%conda``) or behind sudo, with what is to be said of that."""
    rest, notes = list(words), []
    cell = re.match(r"[!%]+", rest[0]) if rest else None
    if cell is not None:
        rest[0] = rest[0][cell.end() :]
        rest = rest if rest[0] else rest[1:]
        magic = (
            "" if cell[0].startswith("!") else "the kernel's own environment; this answer is for the one named above"
        )
        notes.append(f"In a notebook, restart the kernel afterwards{': it changes ' + magic if magic else ''}")
        if not magic and rest:
            notes.append(f"`!{rest[0]}` runs the first {rest[0]} of PATH; `%{rest[0]}` takes the kernel's environment")
    if rest[:1] != ["sudo"]:
        return Typed(tuple(rest), tuple(notes))
    rest = rest[1:]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in _SUDO_VALUES and rest:
            rest.pop(0)
    return Typed(tuple(rest), tuple(notes), sudo=True)


def did_you_mean(verb: str, known: Sequence[str]) -> str | None:
    """The command that a mistyped one is near to."""
    near = difflib.get_close_matches(verb, known, n=1, cutoff=_NEAR)
    return near[0] if near else None


def unquoted(text: str) -> tuple[str, ...]:
    """The words of a line that a shell would read as a redirection: ``numpy<2``, and not ``'numpy<2'``."""
    # without quotation marks, and what stands between them
    bare = re.sub(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", "''", text)
    return tuple(word for word in bare.split() if re.fullmatch(r"[A-Za-z0-9._-]+(\[[^]]*])?[<>]=?[^<>=].*", word))
