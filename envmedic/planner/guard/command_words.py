"""Parsed command lines of package managers: the tool and its command. Pure.

Unknown words are refused. A verdict on another command than the one that will run is worse than none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from envmedic.errors import InputError
from envmedic.model.answers.guard import GuardedCommand, OtherPlaceCommand, PackageTool
from envmedic.planner.guard import command_tools, conda_commands, project_commands, typed_lines
from envmedic.planner.guard.command_tools import UvHelp

UNDERSTOOD = (
    "pip install|uninstall, python -m pip install|uninstall, uv pip install|uninstall|sync, uv add|remove|sync|run|lock, "
    "poetry|pdm add|remove|install|sync|update|lock, conda|mamba|micromamba install|update|remove|create|env"
)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PYTHON = re.compile(r"python[0-9.]*")
_PIP = re.compile(r"pip[0-9.]*")
# https://docs.astral.sh/uv/reference/cli/
_UVS_OTHERS = frozenset({"auth", "build", "cache", "export", "format", "help", "init", "publish", "python", "self", "tool",
                         "tree", "version"})  # fmt: skip
_SHELL = re.compile(r"&&|\|\||^[|&;<>]|[;&|]$|\$|`|^\d?>")
"""Shell syntax in an unquoted word, which only a shell can expand."""


@dataclass(frozen=True)
class Read:
    """A parsed command with the words around it."""

    words: tuple[str, ...]
    command: GuardedCommand
    variables: Mapping[str, str]
    """Variables that are assigned in front of the command."""
    program: str
    """The first word of the command, which may be a path."""
    notes: tuple[str, ...] = ()


def split(text: str) -> tuple[str, ...]:
    """Split a command that was given as one text. Raises InputError for shell syntax other than quotes."""
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


def read_command(words: Sequence[str], uv_help: UvHelp) -> Read:
    """Parse `words`. Raises CannotTell for an unknown option, InputError for another program or command."""
    typed = typed_lines.stripped(words)
    rest, variables = _assigned(typed.words)
    tool, arguments = _program(rest, words)
    if typed.sudo and tool == "pip" and "/" not in rest[0]:
        why = f"sudo runs the system's {rest[0]}, not the one of this environment; without sudo it is about this one"
        return Read(tuple(words), OtherPlaceCommand(tool=tool, why=why), variables, rest[0], typed.notes)
    as_root = ("Run as root, it leaves files that only root can change or remove",) if typed.sudo else ()
    command = _command(tool, arguments, uv_help)
    return Read(tuple(words), command, variables, rest[0], (*typed.notes, *as_root))


def _command(tool: PackageTool, arguments: Sequence[str], uv_help: UvHelp) -> GuardedCommand:
    if tool == "pip":
        return command_tools.read_pip(arguments)
    if tool == "uv":
        noun = next((item for item in arguments if not item.startswith("-")), "")
        if noun in _UVS_OTHERS:
            return OtherPlaceCommand(tool=tool, why="it changes no environment that exists")
        by_pip = "pip" in arguments and noun not in project_commands.VERBS["uv"]
        return command_tools.read_uv(arguments, uv_help) if by_pip else project_commands.read(tool, arguments, uv_help)
    if tool in project_commands.TOOLS:
        return project_commands.read(tool, arguments)
    return conda_commands.read_conda(tool, arguments)


def tool_of(words: Sequence[str]) -> PackageTool:
    """Return the package manager that `words` run. Raises InputError for another program."""
    return _program(_assigned(typed_lines.stripped(words).words)[0], words)[0]


def notes(text: str) -> tuple[str, ...]:
    """Return a note for each word of a typed line that a shell would read as a redirection."""
    return tuple(f"In a shell, quote {word!r}: it redirects input or output" for word in typed_lines.unquoted(text))


def _assigned(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words after the assignments in front, and the assignments."""
    rest, variables = list(words), {}
    # options of env, such as -i, change the environment in ways that the dry run would not repeat
    if rest[:1] == ["env"] and len(rest) > 1 and not rest[1].startswith("-"):
        rest = rest[1:]
    while rest and (found := _ASSIGNMENT.fullmatch(rest[0])):
        variables[found[1]] = found[2]
        rest = rest[1:]
    if not rest:
        raise _not_understood(words, "there is no program in it")
    return rest, variables


def _program(rest: Sequence[str], words: Sequence[str]) -> tuple[PackageTool, Sequence[str]]:
    """Return the package manager and the words after its name."""
    program, after = rest[0].rpartition("/")[2], list(rest[1:])
    if _PYTHON.fullmatch(program):
        # python [-I -B …] -m pip …
        while after and re.fullmatch(r"-[IEBsuP]+", after[0]):
            after = after[1:]
        if after[:2] != ["-m", "pip"]:
            raise _not_understood(words, "of Python, only `-m pip` is understood")
        return "pip", after[2:]
    if _PIP.fullmatch(program):
        return "pip", after
    tools: tuple[PackageTool, ...] = ("uv", *conda_commands.TOOLS, *project_commands.TOOLS)
    for tool in tools:
        if program == tool:
            return tool, after
    raise _not_understood(words, f"envmedic does not know what {program} does")


def _not_understood(words: Sequence[str], cause: str) -> InputError:
    return InputError(
        f"The command {shlex.join(words)!r} is not understood", cause=cause, hint=f"Understood are: {UNDERSTOOD}"
    )
