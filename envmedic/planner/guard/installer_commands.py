"""Commands of installers that are run in a clone: which there are, and what is to be said of those that are not. Pure."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Sequence
from typing import Literal, NamedTuple

from envmedic.errors import InputError

WrappedTool = Literal["pip", "uv", "conda"]
TOOLS: tuple[WrappedTool, ...] = ("pip", "uv", "conda")
_PIP = re.compile(r"pip[0-9.]*")
_PYTHON = re.compile(r"python[0-9.]*")
_CHANGING: dict[WrappedTool, tuple[str, ...]] = {
    "pip": ("install", "uninstall"),
    "uv": ("pip install", "pip uninstall", "pip sync", "sync"),
    "conda": ("install", "update", "upgrade", "remove", "uninstall"),
}
# https://docs.astral.sh/uv/reference/cli/, https://pip.pypa.io/en/stable/cli/, https://docs.conda.io/projects/conda
_OTHERS: dict[WrappedTool, tuple[str, ...]] = {
    "pip": ("cache", "check", "completion", "config", "debug", "download", "freeze", "hash", "help", "index", "inspect", "list",
            "lock", "search", "show", "wheel"),
    "uv": ("auth", "build", "cache", "export", "help", "init", "pip check", "pip compile", "pip freeze", "pip list", "pip show",
           "pip tree", "publish", "python", "run", "self", "tool", "tree", "venv", "version", "format", "lock"),
    "conda": ("activate", "clean", "compare", "config", "create", "deactivate", "doctor", "env", "export", "info", "init", "list",
              "notices", "package", "rename", "run", "search"),
}  # fmt: skip
_MANIFEST = ("add", "remove")
"""Commands of uv that write the manifest of a project, which is no part of its environment."""
_PLACES: dict[WrappedTool, dict[str, str]] = {
    "pip": {"--python": "--python"},
    "uv": {"--python": "--python", "-p": "--python"},
    "conda": {"-n": "--name", "--name": "--name", "-p": "--prefix", "--prefix": "--prefix"},
}
"""Each tool's options that name the environment, with the option of envmedic that means the same."""
_ELSEWHERE = {
    "pip": ("--target", "-t", "--prefix", "--root", "--user"),
    "uv": ("--target", "-t", "--prefix", "--project", "--directory", "--system"),
    "conda": (),
}
_OTHER_INSTALLERS = {
    "mamba": "`conda` in its place, or take",
    "micromamba": "`conda` in its place, or take",
    "pixi": "take",
    "poetry": "take",
    "pdm": "take",
    "hatch": "take",
    "easy_install": "`pip` in its place, or take",
    "pipenv": "take",
}


class InstallerCommand(NamedTuple):
    """A command that changes an environment."""

    tool: WrappedTool
    words: tuple[str, ...]
    """Without the tool's own name."""
    verb: str
    """Such as ``install`` or ``pip install``."""

    @property
    def line(self) -> tuple[str, ...]:
        """All words, as for ``envmedic guard``."""
        return (self.tool, *self.words)

    @property
    def of_project(self) -> bool:
        """Whether it makes the environment of a project what the project's lock says."""
        return self.tool == "uv" and self.verb == "sync"


class Started(NamedTuple):
    """Words that begin with an installer."""

    tool: WrappedTool
    rest: tuple[str, ...]
    python: str | None
    """The interpreter whose environment they are about, where they name it by a path."""


def started(words: Sequence[str]) -> Started | None:
    """Return the installer that `words` begin with: ``pip3.12``, ``/env/bin/pip`` and ``python -m pip`` are pip.

    None for words that begin with none. Raises InputError for an installer that is not run in clones.
    """
    if not words or words[0].startswith("-"):
        return None
    folder, program = os.path.split(words[0].lstrip("!%"))  # as a cell of a notebook has it
    if program in _OTHER_INSTALLERS and words[1:]:
        raise InputError(
            f"{program} is not run in a copy of an environment",
            cause="It keeps files of its own beside the environment"
            if program not in {"mamba", "micromamba"}
            else None,
            hint=f"Use {_OTHER_INSTALLERS[program]} `envmedic snapshot` before it: `envmedic undo` then goes back",
        )
    if _PYTHON.fullmatch(program) and tuple(words[1:3]) == ("-m", "pip"):
        return Started("pip", tuple(words[3:]), words[0] if folder else None)
    if _PIP.fullmatch(program):
        return Started("pip", tuple(words[1:]), os.path.join(folder, "python") if folder else None)  # noqa: PTH118  # text
    return next((Started(tool, tuple(words[1:]), None) for tool in TOOLS if tool == program), None)


def read(tool: WrappedTool, words: Sequence[str]) -> InstallerCommand:
    """Return the command of `tool` with these words. Raises InputError for one that changes no environment, or another place."""
    named = [word for word in words if not word.startswith("-")]
    verb = " ".join(named[: 2 if tool == "uv" and named[:1] == ["pip"] else 1])
    told = f"{tool} {verb}".strip()
    if verb in _CHANGING[tool]:
        command = InstallerCommand(tool, tuple(words), verb)
        _require_here(command)
        return command
    if tool == "uv" and verb in _MANIFEST:
        raise InputError(
            f"`{told}` writes pyproject.toml and uv.lock, which lie outside of the environment",
            cause="They would be changed although the environment stays as it is where a check fails",
            hint=f"`uv {' '.join([verb, '--no-sync', *_after(verb, words)])}`, then `envmedic uv sync`",
        )
    if verb in _OTHERS[tool]:
        raise InputError(f"`{told}` changes no environment that exists", hint="Run it as it is, without envmedic")
    known = [*_CHANGING[tool], *(_MANIFEST if tool == "uv" else ())]
    near = difflib.get_close_matches(verb, [*known, *_OTHERS[tool]], n=1)
    if not near:
        raise InputError(
            f"{tool} has no command {verb!r}" if verb else f"Which command of {tool}?",
            hint=f"Those that change an environment: {', '.join(f'`envmedic {tool} {item}`' for item in known)}",
        )
    meant = f"envmedic {tool} {near[0]} {shlex.join(_after(verb, words))}".strip()
    raise InputError(f"{tool} has no command {verb!r}", cause=f"did you mean {near[0]!r}?", hint=f"`{meant}`")


def _after(verb: str, words: Sequence[str]) -> list[str]:
    """The words without those of the verb."""
    left, found = verb.split(), []
    for word in words:
        if left and word == left[0]:
            left.pop(0)
        else:
            found.append(word)
    return found


def _require_here(command: InstallerCommand) -> None:
    for word in command.words:
        if word.partition("=")[0] in _ELSEWHERE[command.tool]:
            raise InputError(
                f"{word.partition('=')[0]} of {command.tool} installs into another place than the environment",
                hint="Run it as it is, without envmedic: `envmedic undo` would not reach that place",
            )
        if word in {"--dry-run", "-d"} and (word != "-d" or command.tool == "conda"):
            raise InputError(
                f"{word} changes nothing",
                hint=f"Ask `envmedic guard -- {shlex.join(command.line)}`, or run it as it is",
            )


def split_place(tool: WrappedTool, words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Split the words into what names the environment, as options of envmedic, and the others.

    Raises InputError where the tool's option names no environment but a release of Python.
    """
    named: list[str] = []
    others: list[str] = []
    rest = list(words)
    # `uv sync --python` is about the environment to be, not about where one is
    flags = {} if tool == "uv" and "pip" not in words else _PLACES[tool]
    while rest:
        word = rest.pop(0)
        option, given, value = word.partition("=")
        if option not in flags or (given and not option.startswith("--")):
            others.append(word)
            continue
        value = value if given else "".join(rest[:1])
        del rest[: 0 if given else 1]
        named = [flags[option], value] if tool == "conda" else _by_interpreter(tool, option, value)
    return named, tuple(others)


def _by_interpreter(tool: WrappedTool, option: str, value: str) -> list[str]:
    """Uv and pip take an interpreter or the directory of an environment."""
    if os.path.isdir(value):  # noqa: PTH112  # text
        return ["--prefix", value]
    if os.path.exists(value):  # noqa: PTH110  # text
        return ["--python", value]
    raise InputError(
        f"{option} {value} of {tool} names no environment",
        cause="There is no such file or directory",
        hint="Name the environment by its directory: -p PREFIX",
    )


def split_own(words: Sequence[str], takes_value: frozenset[str]) -> tuple[list[str], tuple[str, ...]]:
    """Split what follows the tool into envmedic's own options, which stand before the command, and the command."""
    own: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        own.append(word)
        # the value of --events may be left out: a file is told from a command by its name
        if rest and (word in takes_value or (word == "--events" and set(rest[0]) & set("./"))):
            own.append(rest.pop(0))
    return own, tuple(rest)
