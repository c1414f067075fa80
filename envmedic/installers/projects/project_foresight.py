"""What a command of a project's tool would change in its environment: the tool's own dry run, in a copy of the project.

The copy gets a stand-in for the environment, as for `uv pip`: its metadata, and nothing that could be run.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from packaging.utils import canonicalize_name

from envmedic.errors import InputError
from envmedic.installers.projects import project_copy, project_tools
from envmedic.installers.projects.project_copy import NoEditError
from envmedic.installers.resolution.dry_run import (
    SOURCE_NEEDED,
    DryRunRequest,
    DryRunResult,
    Planned,
    planned,
    stand_in,
)
from envmedic.model.answers.guard import PipCommand, ProjectCommand
from envmedic.model.facts import Environment
from envmedic.model.pins import Project
from envmedic.model.ports import CommandResult

_WRITES = frozenset({"add", "remove", "update", "lock"})
_SYNCED = {"--group": "--group", "--optional": "--extra", "--package": "--package"}
"""Options of ``uv add``, and those of ``uv sync`` that mean the same."""
_NETWORK = re.compile(
    r"error sending request|dns error|cannot be reached|[Cc]onnection|timed out|Name or service", re.ASCII
)
_NO_WHEEL = re.compile(r"Unable to find candidates|CandidateNotFound")
"""Of PDM, which is held to wheels."""
_OF_POETRY = re.compile(
    r"\s+- (Installing|Updating|Downgrading|Removing) (\S+) \(([^ )]+)(?: -> ([^ )]+))?[^)]*\)(: Skipped.*)?"
)
_OF_PDM = re.compile(r"\s+- (\S+) (\S+)(?: -> (\S+))?")


def foresee(
    command: ProjectCommand,
    environment: Environment,
    variables: Mapping[str, str],
    *,
    offline: bool,
    timeout_s: float | None,
) -> DryRunResult:
    """Ask the tool. Raises InputError for another project than the environment's, InstallerError without a Python."""
    project = _require_its_own(command, environment)
    if command.tool == "pixi":
        return DryRunResult(unknown=f"only pixi's own solver tells, and `pixi {command.verb}` has no dry run")
    if "--no-sync" in command.words and command.verb == "run":
        return DryRunResult()
    if any(_is_place(word) for word in command.words):
        return DryRunResult(
            unknown=f"{command.tool} {command.verb} names a file or directory, which may be built first"
        )
    try:
        return _asked(command, project, environment, variables, offline=offline, timeout_s=timeout_s)
    except NoEditError as error:
        return DryRunResult(unknown=f"it is not known what {command.tool} {command.verb} would do: {error}")


def _require_its_own(command: ProjectCommand, environment: Environment) -> Project:
    project = environment.project
    here = Path.cwd()
    if project is None or project.tool != command.tool or not project.sync:
        raise InputError(
            f"{environment.prefix} is not the environment of a project of {command.tool}",
            cause=f"`{command.tool} {command.verb}` changes the environment of the project around {here}",
            hint="Name the environment of that project with -p",
        )
    return project


def _is_place(word: str) -> bool:
    return ("/" in word and "://" not in word and not word.startswith("--")) or word in {".", "-e", "--editable", "-r"}


def _asked(
    command: ProjectCommand,
    project: Project,
    environment: Environment,
    variables: Mapping[str, str],
    *,
    offline: bool,
    timeout_s: float | None,
) -> DryRunResult:
    prefix, limit = Path(environment.real_prefix), timeout_s or project_tools.TIMEOUT_S
    program = project_tools.find(command.tool, prefix)
    uv = program if command.tool == "uv" else project_tools.find("uv", prefix)
    asking = DryRunRequest(uv, PipCommand(tool="uv", verb="install"), environment, variables, offline, timeout_s)
    with project_copy.copied(project) as copy, tempfile.TemporaryDirectory(prefix="envmedic-guard-") as name:
        python = stand_in(asking, Path(name) / "env")
        shell: dict[str, str | None] = {**dict.fromkeys(os.environ), **variables}
        tool = project_tools.ProjectProgram(command.tool, program, str(python), shell, offline, limit)
        place = copy / _member(project)
        place = place if place.is_dir() else copy
        if command.files_alone or (command.tool == "uv" and command.verb in _WRITES):
            written = tool.write(place, command.verb, command.words)
            if written.returncode != 0:
                return _not_done(written)
        foreseen = tool.run(place, *_dry_run(command))
        if foreseen.returncode != 0:
            return _not_done(foreseen)
        lock = project_copy.parsed(copy / str(project.lock))
        text = foreseen.stdout + foreseen.stderr
        found = planned(text, environment) if command.tool == "uv" else tuple(_read(command.tool, text, environment))
        # a project in a directory counts as another one, since the copy is in another place
        own = {canonicalize_name(item) for item in project_copy.local_names(project, lock)}
    changes = tuple(item for item in found if item.name not in own or item.before is None or item.after is None)
    return DryRunResult(changes, own=frozenset(own))


def _member(project: Project) -> str:
    """The working directory inside of the project: a command belongs to the member of the workspace around it."""
    here, folder = Path.cwd().resolve(), Path(project.folder).resolve()
    return here.relative_to(folder).as_posix() if here.is_relative_to(folder) else "."


def _dry_run(command: ProjectCommand) -> Iterator[str]:
    """The dry run of what the command does to the environment; of uv and of a lock, once manifest and lock are written."""
    if command.tool == "uv":
        own: tuple[str, ...] = () if command.files_alone else tuple(_chosen(command.words))
        own = own if command.verb in _WRITES else command.words
        exact = "--exact" in own or command.files_alone or command.verb in {"sync", "remove"}
        yield from ("sync", "--dry-run", *(item for item in own if item != "--exact"))
        yield from () if exact else ("--inexact",)
    elif command.files_alone:
        yield from ("install" if command.tool == "poetry" else "sync", "--dry-run")
    else:
        yield from (command.verb, "--dry-run", *command.words)


def _chosen(words: Sequence[str]) -> Iterator[str]:
    """What ``uv add`` and ``uv remove`` sync besides the default groups: the group, extra and member that they write."""
    named = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else (word,))]
    for option, value in pairwise(named):
        if option in _SYNCED:
            yield from (_SYNCED[option], value)


def _not_done(result: CommandResult) -> DryRunResult:
    text = project_tools.said(result)
    if SOURCE_NEEDED.search(text) or _NO_WHEEL.search(text):
        return DryRunResult(unknown=f"it would build from source first, and only that tells what it needs: {text}")
    if _NETWORK.search(text):
        return DryRunResult(unknown=f"what it would take cannot be asked for: {text}")
    return DryRunResult(refused=text)


def _read(tool: str, text: str, environment: Environment) -> Iterator[Planned]:
    """The changes that a dry run of poetry or PDM prints."""
    for line in text.splitlines():
        if tool == "poetry" and (found := _OF_POETRY.fullmatch(line)) and not found[5]:
            what, name, first, second = found[1], found[2], found[3], found[4]
        elif tool == "pdm" and (item := _OF_PDM.fullmatch(line)):
            what, name, first, second = "", item[1], item[2], item[3]
        else:
            continue
        key = canonicalize_name(name)
        installed = environment.distribution(key)
        before = installed.version if installed is not None else None
        gone = what == "Removing" or (tool == "pdm" and second is None and before == first)
        yield Planned(key, before, None if gone else second or first)
