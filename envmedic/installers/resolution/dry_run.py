"""What a command of pip or uv would change in an environment, by uv's own dry run. The environment is not written to.

uv leaves a lock file in the environment that it resolves for. So it is asked about a stand-in: an empty environment of
the same Python, in which the metadata of what is installed is linked. No source archive is built for it: what would
have to be is said to be unknown.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import tomli
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from envmedic import limits, proc
from envmedic.errors import InputError, InstallerError, NoSolution
from envmedic.installers.index import configuration
from envmedic.installers.index.configuration import IndexConfiguration, PipConfiguration, UvConfiguration
from envmedic.installers.resolution import uv_options
from envmedic.installers.resolution.requirement_files import has_editable, requirements
from envmedic.installers.resolution.uv_errors import error_from
from envmedic.installers.wheels.remote_metadata import local_file
from envmedic.model.answers.guard import PipCommand
from envmedic.model.facts import Environment
from envmedic.model.ports import CommandResult, ResolveRequest
from envmedic.owner import owner

TIMEOUT_S = 900.0
_LINE = re.compile(r" ([-+~]) ([A-Za-z0-9][A-Za-z0-9._-]*)(?:==(\S+)| @ (\S+))?(?: \(from (\S+)\))?")
_UNSET_ALWAYS = ("UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_PROJECT_ENVIRONMENT", "UV_BREAK_SYSTEM_PACKAGES", "VIRTUAL_ENV")
_UVS_OWN = ("UV_CACHE_DIR", "UV_NO_CACHE", "UV_CONCURRENT_", "UV_HTTP_", "UV_OFFLINE", "UV_REQUEST_TIMEOUT")
"""Beginnings of variables of uv that stay when it stands in for pip."""
_UVS_MARK = re.compile(r"uv\s*=")
_SOURCE_NEEDED = re.compile(
    r"Building source distributions (?:for \S+ )?is disabled|has no usable wheels|building from source"
)


@dataclass(frozen=True)
class Planned:
    """One distribution that the command would change."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class DryRunResult:
    """What the command would do."""

    changes: tuple[Planned, ...] = ()
    refused: str | None = None
    """Why it would end in an error."""
    unknown: str | None = None
    """Why that cannot be told without carrying it out."""


@dataclass(frozen=True)
class DryRunRequest:
    """A command, and what it is asked in."""

    uv: str
    command: PipCommand
    environment: Environment
    variables: Mapping[str, str]
    """Of the shell that it would be run in."""
    offline: bool = False
    timeout_s: float | None = None


def removed(command: PipCommand, environment: Environment) -> DryRunResult:
    """What an uninstall would take away: nothing has to be asked for it."""
    texts = [*(_name(text) for text in command.requirements)]
    texts += [item.name for file in command.files for item in requirements(file)]
    names = dict.fromkeys(canonicalize_name(text) for text in texts)
    there = {item.name: item.version for item in reversed(environment.distributions)}
    return DryRunResult(tuple(Planned(name, there[name], None) for name in names if name in there))


def _name(text: str) -> str:
    try:
        return limits.parsed(text).name
    except InvalidRequirement as error:
        raise InputError(
            f"{text!r} is not the name of a distribution", hint="Name distributions as they are installed"
        ) from error


def foresee(asking: DryRunRequest) -> DryRunResult:
    """Ask uv. Raises NetworkError and InstallerError where it cannot answer, InputError for a file that is missing."""
    if not asking.environment.interpreter.starts:
        raise InstallerError(
            f"{asking.environment.interpreter.path} does not start",
            cause=asking.environment.interpreter.error,
            hint="Restore the interpreter that the environment was made with",
        )
    command = asking.command
    files = command.requirements if command.verb == "sync" else command.files
    editable = next((file for file in files if has_editable(file)), None)
    if editable is not None:
        return DryRunResult(unknown=f"{editable} asks for an editable project, which would be built first")
    with tempfile.TemporaryDirectory(prefix="envmedic-guard-") as name:
        folder = Path(name)
        python = _stand_in(asking, folder / "env")
        result = _run(asking, [*_verb(asking), f"--python={python}", "--no-build", *_sources(asking), *_inputs(asking)])
        if result.returncode == 0:
            planned = _planned(result.stderr + result.stdout, asking.environment)
            return DryRunResult(planned, unknown=_built_instead(asking, planned, python, folder))
        error = error_from(result, _asked_for(asking.command))
        if isinstance(error, NoSolution | InstallerError):
            return _not_done(error, result)
        raise error


def _verb(asking: DryRunRequest) -> tuple[str, ...]:
    return ("pip", "sync" if asking.command.verb == "sync" else "install", "--dry-run")


def _asked_for(command: PipCommand) -> tuple[str, ...]:
    return (*command.requirements, *command.files, *command.editables)


def _not_done(error: NoSolution | InstallerError, result: CommandResult) -> DryRunResult:
    """A refusal, unless it is only that no source archive was built here. Raises what is neither."""
    if _SOURCE_NEEDED.search(result.stderr + result.stdout):
        return DryRunResult(
            unknown=f"it would build from source first, and only that tells what it needs: {error.cause}"
        )
    if isinstance(error, InstallerError):
        raise error
    return DryRunResult(refused=error.cause or error.summary)


def _built_instead(asking: DryRunRequest, planned: Iterable[Planned], python: Path, folder: Path) -> str | None:
    """The newer release of something asked for that is a source archive alone: the command would build that one."""
    asked = _by_name(asking.command)
    new = {item.name for item in planned if item.after is not None}
    if asking.command.only_wheels or asking.command.verb == "sync" or not any(name in new for name in asked):
        return None
    listed = folder / "asked.in"
    listed.write_text("".join(f"{text}\n" for name, text in asked.items() if name in new), encoding="utf-8")
    ask = ["pip", "compile", "--no-deps", "--no-header", "--no-annotate", f"--python={python}", *_sources(asking)]
    with_wheels, any_kind = (
        _run(asking, [*ask, *build, str(listed)]).stdout.splitlines() for build in (["--no-build"], [])
    )
    others = sorted(set(any_kind) - set(with_wheels))
    return f"it would build {', '.join(others)} from a source archive" if others else None


def _by_name(command: PipCommand) -> dict[str, str]:
    """What is asked for by name, from an index."""
    read = [item for text in command.requirements if (item := _requirement(text)) is not None]
    read += [item for file in command.files for item in requirements(file)]
    return {canonicalize_name(item.name): str(item) for item in read if item.url is None}


def _requirement(text: str) -> Requirement | None:
    """None for a path or a URL."""
    try:
        return limits.parsed(text)
    except InvalidRequirement:
        return None


def _inputs(asking: DryRunRequest) -> Iterator[str]:
    command = asking.command
    yield from (f"--constraints={path}" for path in command.constraints)
    yield from (item for item in command.options if item not in command.sources)
    if command.verb == "sync":
        yield from command.requirements
        return
    yield from (f"--requirements={path}" for path in command.files)
    if command.upgrade == "all":
        yield "--upgrade"
    elif command.upgrade == "named":
        names = dict.fromkeys((*_by_name(command), *_names_of_wheels(command)))
        yield from (f"--upgrade-package={name}" for name in names)
    yield "--"
    yield from command.requirements
    yield from command.editables  # as what they are: for an editable one uv runs a build even where it must not


def _names_of_wheels(command: PipCommand) -> Iterator[str]:
    for text in command.requirements:
        if text.endswith(".whl"):
            yield text.rpartition("/")[2].partition("-")[0]


def _sources(asking: DryRunRequest) -> Iterator[str]:
    """Where distributions come from: as pip is configured, in uv's words; uv reads its own configuration."""
    yield from ("--color=never", "--no-progress", "--no-python-downloads")
    if asking.offline and "--offline" not in asking.command.sources:
        yield "--offline"
    yield from asking.command.sources
    if asking.command.tool == "pip":
        yield "--no-config"
        read = _as_pip(asking)
        yield from uv_options.translate(read, ResolveRequest(pins=()), asking.variables).arguments


def _as_pip(asking: DryRunRequest) -> IndexConfiguration:
    """The configuration of pip with what the command itself says; uv's does not count."""
    command, variables = asking.command, dict(asking.variables)
    if command.isolated:
        variables = {name: value for name, value in variables.items() if not name.startswith("PIP_")}
        variables |= {"HOME": os.devnull, "XDG_CONFIG_HOME": os.devnull}
    pip: PipConfiguration = configuration.read_pip(Path(asking.environment.prefix), variables)
    pip = replace(
        pip,
        index_url=command.index_url or pip.index_url,
        extra_index_urls=(*pip.extra_index_urls, *command.extra_index_urls),
        find_links=(*pip.find_links, *command.find_links),
        trusted_hosts=(*pip.trusted_hosts, *command.trusted_hosts),
        no_index=pip.no_index or command.no_index,
    )
    return IndexConfiguration(pip=pip, uv=UvConfiguration())


def _run(asking: DryRunRequest, arguments: Sequence[str]) -> CommandResult:
    return proc.run([asking.uv, *arguments], env=_variables(asking), timeout_s=asking.timeout_s or TIMEOUT_S)


def _variables(asking: DryRunRequest) -> dict[str, str | None]:
    """Laid over this process's own: those of the shell, without what would lead uv to another environment."""
    found: dict[str, str | None] = dict.fromkeys(name for name in os.environ if name not in asking.variables)
    found |= asking.variables
    found |= dict.fromkeys(_UNSET_ALWAYS)
    found["PATH"] = outside(asking.variables.get("PATH", ""), Path(asking.environment.real_prefix))
    if asking.command.tool == "pip":
        found |= {name: None for name in found if name.startswith("UV_") and not name.startswith(_UVS_OWN)}
        found |= uv_options.translate(_as_pip(asking), ResolveRequest(pins=()), asking.variables).environment
    return found


def outside(path: str, prefix: Path) -> str:
    """PATH without the directories in `prefix`, from which uv and conda would run git, keyring and other helpers."""
    return os.pathsep.join(item for item in path.split(os.pathsep) if not Path(item).resolve().is_relative_to(prefix))


def _stand_in(asking: DryRunRequest, folder: Path) -> Path:
    """Make the stand-in, and return its Python. Raises InstallerError."""
    environment, foreign = asking.environment, owner(Path(asking.environment.prefix)) is not None
    python = sys.executable if foreign else environment.interpreter.path
    argv = [
        asking.uv,
        "venv",
        "--no-config",
        "--no-project",
        "--no-python-downloads",
        f"--python={python}",
        str(folder),
    ]
    result = proc.run(argv, env=_variables(asking), timeout_s=TIMEOUT_S)
    site = next(folder.glob("lib/python3*/site-packages"), None)
    if result.returncode != 0 or site is None:
        raise InstallerError(
            f"uv cannot use {python}",
            cause=result.stderr.strip() or None,
            hint="`envmedic diagnose` says what is wrong with the interpreter",
        )
    _made_by_uv(folder / "pyvenv.cfg", Path(environment.real_prefix) / "pyvenv.cfg")
    prefix = Path(environment.real_prefix)
    for item in environment.distributions:
        _link(prefix / item.metadata_path, site)
    return folder / "bin" / "python"


def _made_by_uv(stand_in: Path, real: Path) -> None:
    """Leave uv's mark out where the environment has none: uv spares pip in what it has not made."""
    lines = real.read_text(encoding="utf-8").splitlines() if real.is_file() else []
    if not any(_UVS_MARK.match(line) for line in lines):
        kept = [line for line in stand_in.read_text(encoding="utf-8").splitlines() if not _UVS_MARK.match(line)]
        stand_in.write_text("\n".join(kept) + "\n", encoding="utf-8")


def _link(metadata: Path, site: Path) -> None:
    """Show the metadata in `site`: uv passes over directories that are links, not over links in them."""
    target = site / metadata.name
    if not metadata.is_dir():
        target.symlink_to(metadata)
        return
    target.mkdir(exist_ok=True)
    for file in metadata.iterdir():
        if not (target / file.name).exists():
            (target / file.name).symlink_to(file)


def _planned(output: str, environment: Environment) -> tuple[Planned, ...]:
    """What uv says that it would do, a line for each distribution that goes (-), comes (+) or is replaced (~)."""
    gone: dict[str, str | None] = {}
    come: dict[str, str | None] = {}
    for line in output.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        name = canonicalize_name(found[2])
        version = found[3] or _version_at(found[4] or "")
        if found[1] in "-~":
            gone.setdefault(name, version)
        if found[1] in "+~":
            come[name] = version
    there = {item.name: item.version for item in reversed(environment.distributions)}
    return tuple(Planned(name, gone.get(name) or there.get(name), come.get(name)) for name in sorted({*gone, *come}))


def _version_at(url: str) -> str:
    """The version of a wheel or of a project that says it without being built. Raises InstallerError for another."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    if name.endswith(".whl"):
        return str(parse_wheel_filename(name)[1])
    path = local_file(url)
    project = path / "pyproject.toml" if path is not None else None
    if project is not None and project.is_file():
        version = tomli.loads(project.read_text(encoding="utf-8")).get("project", {}).get("version")
        if isinstance(version, str):
            return version
    raise InstallerError(
        f"The version of {url} is not known before it is built",
        hint="Build its wheel first, and ask about that",
    )
