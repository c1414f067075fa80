"""What repairs an environment: envmedic, what people do without it, and any command of yours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import uv
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .judge import installed, name_of, owned
from .room import LIMIT_S, Room

_FRAME = re.compile(r'File "[^"]*[/\\](?:site|dist)-packages[/\\](\w+)')
_MISSING = re.compile(
    r"No module named '(\w+)|cannot import name '\w+' from '(\w+)|module '(\w+)[\w.]*' has no attribute"
)


@dataclass(frozen=True)
class Handed:
    """What somebody has who sees a program fail."""

    room: Room
    mended: Callable[[Room], object]
    """A repair that is known to be one, which nobody has who repairs in earnest."""
    requirements: tuple[str, ...]
    """What was once installed on purpose, pinned as it was then."""
    log: Path
    """What the program said."""
    program: str

    @property
    def names(self) -> tuple[str, ...]:
        """The requirements without their versions."""
        return tuple(line.partition("==")[0] for line in self.requirements)


Tool = Callable[[Handed], int]
"""Repairs, and returns an exit status."""


def command(template: str) -> Tool:
    """A tool by its command line, with ``{prefix}``, ``{python}``, ``{log}`` and ``{requirements}`` (a file) in it."""

    def repair(handed: Handed) -> int:
        listed = handed.room.prefix.parent / "asked.txt"
        listed.write_text("".join(f"{line}\n" for line in handed.requirements))
        places = {"prefix": handed.room.prefix, "python": handed.room.python, "log": handed.log, "requirements": listed}
        return _run(handed.room, [word.format(**places) for word in template.split()])

    return repair


def _run(room: Room, argv: Sequence[str]) -> int:
    """Run with the environment active, and nothing to answer questions from."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "VIRTUAL_ENV": str(room.prefix), **room.variables}
    environment["PATH"] = f"{room.prefix}/bin{os.pathsep}{environment.get('PATH', '')}"
    try:
        done = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=2 * LIMIT_S, check=False,
            cwd=room.prefix.parent if room.ways else None,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return 127
    return done.returncode


def _pip(*words: str) -> Callable[[Handed, Sequence[str]], int]:
    # without byte code: Python makes it again, and it is half of the time
    return lambda handed, what: _run(
        handed.room, [str(handed.room.python), "-m", "pip", "install", "-q", "--no-compile", *words, *what]
    )


def _uv(*words: str) -> Callable[[Handed, Sequence[str]], int]:
    return lambda handed, what: _run(
        handed.room,
        [
            uv.find_uv_bin(),
            "pip",
            "install",
            "-q",
            "--link-mode=copy",
            "--python",
            str(handed.room.python),
            *words,
            *what,
        ],
    )


def reference(handed: Handed) -> int:
    """What is known to repair it, mostly the state before the fault, file by file: the proof that the fault is the only one."""
    handed.mended(handed.room)
    return 0


def recreate(handed: Handed) -> int:
    """A new environment at the same path, from what was once asked for."""
    if "recreate" in handed.room.ways:
        return own("recreate")(handed)
    shutil.rmtree(handed.room.prefix)
    made = subprocess.run([sys.executable, "-m", "venv", str(handed.room.prefix)], capture_output=True, check=False)
    return made.returncode or _uv()(handed, handed.requirements)


def own(way: str) -> Tool:
    """A repair by the tool that made the environment."""

    def repair(handed: Handed) -> int:
        return next((code for argv in handed.room.ways[way] if (code := _run(handed.room, argv))), 0)

    return repair


def named(handed: Handed) -> int:
    """What an answer in a forum says: the package that the error names is reinstalled, in whatever version comes."""
    module = blamed(handed.log.read_text(encoding="utf-8", errors="replace"))
    return 1 if module is None else _pip("--force-reinstall")(handed, [_distribution(handed.room, module)])


def blamed(text: str) -> str | None:
    """The module that an error names: the one that lacks something, else the last installed one of its frames."""
    found = [next(filter(None, groups)) for groups in _MISSING.findall(text)] or _FRAME.findall(text)
    return found[-1] if found else None


def _distribution(room: Room, module: str) -> str:
    """The distribution that brings a module, by the files that it lists; else the module's own name."""
    try:
        start = f"{room.site.relative_to(room.prefix)}/{module}/"
        owners = owned(room, installed(room))
        return next((min(names) for path, names in owners.items() if path.startswith(start)), module)
    except StopIteration:  # nothing is installed there any more
        return module


OWN = (
    "sync", "sync-reinstall", "install", "relock", "upgrade",
    "force-reinstall", "force-reinstall-all", "update-all", "doctor-fix",
)  # fmt: skip
"""What the tools of projects, and conda, offer themselves."""
COMMANDS: Mapping[str, str] = {
    "envmedic": "envmedic apply -p {prefix} --yes --no-gpu --keep-partial --edit-project --log {log}"
}
TOOLS: Mapping[str, Tool] = {
    "reference": reference,
    "pip-pinned": lambda handed: _pip("--force-reinstall")(handed, handed.requirements),
    "pip-unpinned": lambda handed: _pip("--force-reinstall", "--upgrade")(handed, handed.names),
    "uv-pinned": lambda handed: _uv("--reinstall")(handed, handed.requirements),
    "uv-unpinned": lambda handed: _uv("--reinstall", "--upgrade")(handed, handed.names),
    "pip-named": named,
    "recreate": recreate,
    **{way: own(way) for way in OWN},
}


def absent(line: str) -> bool:
    """Whether the program of a command line is not there; one in the broken environment is none that should be."""
    program = line.split(maxsplit=1)[0]
    return "{" not in program and shutil.which(program) is None


def pinned(requirements: Sequence[str], room: Room) -> tuple[str, ...]:
    """The requirements in the versions that an environment has."""
    there = {name_of(item): item.version for item in installed(room)}
    parsed = [Requirement(line) for line in requirements]
    return tuple(f"{item.name}{_extras(item)}=={there[canonicalize_name(item.name)]}" for item in parsed)


def _extras(item: Requirement) -> str:
    return f"[{','.join(sorted(item.extras))}]" if item.extras else ""
