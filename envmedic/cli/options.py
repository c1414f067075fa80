"""argparse helpers: options that ENVMEDIC_* variables can set."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any, NoReturn

from envmedic.errors import ExitCode, InputError

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"", "0", "false", "no", "off"}


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are envmedic's own errors, so that ``--json`` can report them."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing and exiting."""
        raise InputError(message, hint=f"See `{self.prog} --help`")


def option(group: argparse._ActionsContainer, *flags: str, **settings: Any) -> None:
    """Add an option whose default can be set by ``ENVMEDIC_<NAME>``, named in its help."""
    action = group.add_argument(*flags, **settings)
    variable = "ENVMEDIC_" + action.dest.upper()
    if variable in os.environ:
        action.default = _from_variable(action, variable, os.environ[variable])


def _from_variable(action: argparse.Action, variable: str, text: str) -> object:
    if action.nargs == 0:
        return _flag(variable, text)
    if isinstance(action, argparse._AppendAction):  # noqa: SLF001  # argparse has no public name for it
        return text.split(os.pathsep)
    value = action.type(text) if callable(action.type) else text
    if action.choices is not None and value not in action.choices:
        choices = ", ".join(str(choice) for choice in action.choices)
        raise InputError(f"{variable} is {text!r}", cause=f"It can be one of: {choices}", hint=f"Unset {variable}")
    return value


def _flag(variable: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise InputError(
        f"{variable} is {text!r}", cause="It switches something on or off", hint=f"Set {variable} to 1 or 0"
    )


def split_command(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Split ``… --reproduce -- CMD…`` into what argparse reads and the user's own command."""
    words = list(argv)
    if "--" not in words:
        return words, ()
    cut = words.index("--")
    return words[:cut], tuple(words[cut + 1 :])


USAGE_EXIT = ExitCode.USAGE
