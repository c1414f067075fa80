"""A package manager's command line, read: whose it is, and what it asks for. Pure.

What is not understood is refused. An answer about another command than the one that will run is worse than none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from envmedic.errors import InputError
from envmedic.model.answers.guard import GuardedCommand
from envmedic.planner.guard import conda_options, pip_options

UNDERSTOOD = (
    "pip install|uninstall, python -m pip install|uninstall, uv pip install|uninstall|sync, "
    "conda|mamba|micromamba install|update|remove"
)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PYTHON = re.compile(r"python[0-9.]*")
_PIP = re.compile(r"pip[0-9.]*")
_SHELL = re.compile(r"&&|\|\||^[|&;<>]|[;&|]$|\$|`|^\d?>")
"""What only a shell can work out, in a word that was not quoted for it."""


@dataclass(frozen=True)
class Read:
    """A command, and what stood around it."""

    words: tuple[str, ...]
    command: GuardedCommand
    variables: Mapping[str, str]
    """Assigned in front of it."""
    program: str
    """Its first word, which may be the path of a program."""
    notes: tuple[str, ...] = ()


def split(text: str) -> tuple[str, ...]:
    """The words of a command that was given as one text. Raises InputError for more than a shell's plain words."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise InputError(
            f"{text!r} cannot be read as a command", cause=str(error), hint="Quote the command as for a shell"
        ) from error
    strange = next((word for word in words if _SHELL.search(word)), None)
    if strange is not None:
        raise InputError(
            f"{text!r} is more than one plain command",
            cause=f"{strange!r} means something to a shell",
            hint="Give one command at a time, with its variables filled in",
        )
    return words


def read(words: Sequence[str]) -> Read:
    """Understand `words`. Raises InputError for a command, a verb or an option that is not understood."""
    rest, variables = list(words), {}
    if rest[:1] == ["env"] and len(rest) > 1 and not rest[1].startswith("-"):
        rest = rest[1:]
    while rest and (found := _ASSIGNMENT.fullmatch(rest[0])):
        variables[found[1]] = found[2]
        rest = rest[1:]
    if not rest:
        raise _not_understood(words, "there is no program in it")
    return Read(
        words=tuple(words),
        command=_command(rest, words),
        variables=variables,
        program=rest[0],
        notes=tuple(f"In a shell, quote {word!r}: it redirects the output" for word in rest if _redirects(word)),
    )


def _redirects(word: str) -> bool:
    """Whether a shell would take a part of a requirement that was not quoted for a file name."""
    return bool(re.fullmatch(r"[A-Za-z0-9._-]+(\[[^]]*])?[<>]=?.*", word))


def _command(rest: Sequence[str], words: Sequence[str]) -> GuardedCommand:
    program = rest[0].rpartition("/")[2]
    if _PYTHON.fullmatch(program):
        return _module(rest, words)
    if _PIP.fullmatch(program):
        return pip_options.read_pip(rest[1:])
    if program == "uv":
        return pip_options.read_uv(rest[1:])
    if program in conda_options.TOOLS:
        return conda_options.read_conda(program, rest[1:])
    raise _not_understood(words, f"envmedic does not know what {program} does")


def _module(rest: Sequence[str], words: Sequence[str]) -> GuardedCommand:
    """``python [-I -B …] -m pip …``."""
    after = list(rest[1:])
    while after and re.fullmatch(r"-[IEBsuP]+", after[0]):
        after = after[1:]
    if after[:2] != ["-m", "pip"]:
        raise _not_understood(words, "of Python, only `-m pip` is understood")
    return pip_options.read_pip(after[2:])


def _not_understood(words: Sequence[str], cause: str) -> InputError:
    return InputError(
        f"The command {shlex.join(words)!r} is not understood", cause=cause, hint=f"Understood are: {UNDERSTOOD}"
    )
