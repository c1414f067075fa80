"""The command line of each installer as it runs in a clone."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envmedic import proc
from envmedic.api.context.target import EnvironmentTarget
from envmedic.api.installs.outside import WatchedPlaces
from envmedic.compat import guides
from envmedic.errors import InputError, InstallerError
from envmedic.installers.conda.configuration import client
from envmedic.installers.uv import find_uv
from envmedic.linked_prefix import real_prefix
from envmedic.model.facts import Environment
from envmedic.model.ports import UserCommand
from envmedic.planner import import_targets
from envmedic.planner.guard.installer_commands import InstallerCommand, WrappedTool
from envmedic.probe.layout import read_layout, site_packages
from envmedic.probe.packages.distributions import scan

# Seen with `--link-mode copy` over a file that another distribution had brought: uv 0.9.28 to 0.10.0 wrote into it,
# 0.10.12 and later made a new one.
_UV_REPLACES = Version("0.10.12")
_UV_TIMEOUT_S = 30.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NEAR = 0.8


def user_command(
    command: InstallerCommand, target: EnvironmentTarget, environment: Environment
) -> tuple[UserCommand, bool]:
    """Return what is run, and whether it replaces files rather than to write into them."""
    argv, variables, replaces = _ARGV[command.tool](command, target, environment)
    by_name = {item.name: import_targets.importable(item) for item in environment.distributions}

    def imports_of(names: Collection[str]) -> frozenset[str]:
        kept = {name for item, own in by_name.items() if item not in names for name in own}
        return frozenset(name for item in names for name in by_name.get(item, ()) if name not in kept)

    watched = WatchedPlaces.of(command)
    user = UserCommand(
        argv=argv,
        directory=os.getcwd(),  # noqa: PTH109  # text
        variables=variables,
        outside=lambda: watched.told(command),
        imports_of=imports_of,
        new_imports=_imports_in,
        hint=_hint(command, by_name),
    )
    return user, replaces


def _imports_in(tree: Path, names: Collection[str]) -> tuple[str, ...]:
    """The main import names of the distributions `names` of a tree."""
    found = (
        item.distribution for site in site_packages(read_layout(tree), None) for item in scan(site, tree).installed
    )
    return import_targets.main(item for item in found if item.name in names)


def _hint(command: InstallerCommand, installed: Collection[str]) -> str:
    """What to do where the command fails: the name that was likely meant, else its own words."""
    known = {*installed, *guides.guides(), *import_targets.FAMILY}
    for word in command.words:
        name = _NAME.match(word)
        if name is None or word in command.verb.split() or canonicalize_name(name[0]) in known:
            continue
        near = difflib.get_close_matches(canonicalize_name(name[0]), known, n=1, cutoff=_NEAR)
        if near:
            meant = [near[0] + word[name.end() :] if item == word else item for item in command.line]
            return f"Did you mean {near[0]}? `envmedic {shlex.join(meant)}`"
    return f"See what {command.tool} says above; `envmedic guard -- {shlex.join(command.line)}` asks without a change"


_Argv = Callable[[str], tuple[str, ...]]
_Run = tuple[_Argv, dict[str, str], bool]


def _of_pip(command: InstallerCommand, target: EnvironmentTarget, environment: Environment) -> _Run:
    if not any(item.name == "pip" for item in environment.distributions):
        raise InputError(
            f"There is no pip in {target.prefix}", hint=f"`envmedic uv {shlex.join(command.line)}` does the same by uv"
        )
    yes = ("--yes",) if command.verb == "uninstall" and not {"-y", "--yes"} & {*command.words} else ()
    # -I: `python -m pip` would run a pip.py of the working directory, which may be anybody's checkout.
    # PIP_NO_INPUT: nobody can answer, commands of a transaction have no terminal
    return lambda python: (python, "-I", "-m", "pip", *command.words, *yes), {"PIP_NO_INPUT": "1"}, True


def _of_uv(command: InstallerCommand, target: EnvironmentTarget, environment: Environment) -> _Run:
    del environment
    uv = shutil.which("uv") or find_uv()
    variables = {"UV_LINK_MODE": "copy"}  # the cache is on another mount than the clone
    if not command.of_project:
        return lambda _python: (uv, *command.words), variables, _replaces(uv)
    if not any(real_prefix(folder / ".venv") == target.real for folder in _upwards(Path.cwd())):
        raise InputError(
            f"{target.prefix} is not the environment of the project here",
            cause="uv sync changes `.venv` of the project around the working directory",
            hint="Go to its directory, or name its environment with -p",
        )
    if not {"--frozen", "--locked"} & {*command.words}:
        # the lock is no part of the environment: it would be written although the environment stays as it is
        variables["UV_LOCKED"] = "1"

    def argv(python: str) -> tuple[str, ...]:
        return ("/usr/bin/env", f"UV_PROJECT_ENVIRONMENT={Path(python).parent.parent}", uv, *command.words)

    return argv, variables, _replaces(uv)


def _of_conda(command: InstallerCommand, target: EnvironmentTarget, environment: Environment) -> _Run:
    if environment.conda is None:
        raise InputError(f"{target.prefix} is no conda environment", hint="Name one with -p PREFIX or -n NAME")
    conda = client.find(target.real)
    if conda is None:
        raise InstallerError(
            "There is no conda here", hint="Set CONDA_EXE to it, or install with `envmedic pip install`"
        )
    yes = () if {"-y", "--yes"} & {*command.words} else ("--yes",)
    return lambda python: (str(conda), *command.words, "--prefix", str(Path(python).parent.parent), *yes), {}, True


_ARGV: dict[WrappedTool, Callable[[InstallerCommand, EnvironmentTarget, Environment], _Run]] = {
    "pip": _of_pip,
    "uv": _of_uv,
    "conda": _of_conda,
}


def _replaces(uv: str) -> bool:
    """Whether this uv makes new files in place of those that it finds."""
    said = proc.run([uv, "--version"], timeout_s=_UV_TIMEOUT_S)
    found = re.search(r"\d+(?:\.\d+)+", said.stdout)
    try:
        return found is not None and Version(found[0]) >= _UV_REPLACES
    except InvalidVersion:
        return False


def _upwards(folder: Path) -> tuple[Path, ...]:
    return (folder, *folder.parents)
