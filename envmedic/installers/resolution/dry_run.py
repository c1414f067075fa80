"""Dry run of a pip or uv command by uv, without writing to the environment.

uv creates a lock file in the environment that it resolves for. So it gets a stand-in: an empty environment of the same
Python, with links to the metadata of the installed distributions. No source archive is built for a dry run: a command
that would build one has an unknown result.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from envmedic import limits, toml
from envmedic.errors import InputError, InstallerError, NoSolution
from envmedic.installers.index import configuration
from envmedic.installers.index.configuration import IndexConfiguration, PipConfiguration, UvConfiguration
from envmedic.installers.resolution import uv_options
from envmedic.installers.resolution.pythons import python_for, run_for
from envmedic.installers.resolution.requirement_files import has_editable, requirements
from envmedic.installers.resolution.uv_errors import error_from
from envmedic.installers.wheels.remote_metadata import local_file
from envmedic.model.answers.guard import PipCommand
from envmedic.model.facts import Environment
from envmedic.model.ports import CommandResult, ResolveRequest

TIMEOUT_S = 900.0
_LINE = re.compile(r" ([-+~]) ([A-Za-z0-9][A-Za-z0-9._-]*)(?:==(\S+)| @ (\S+))?(?: \(from (\S+)\))?")
_UNSET_ALWAYS = ("UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_PROJECT_ENVIRONMENT", "UV_BREAK_SYSTEM_PACKAGES", "VIRTUAL_ENV")
_UVS_OWN = ("UV_CACHE_DIR", "UV_NO_CACHE", "UV_CONCURRENT_", "UV_HTTP_", "UV_OFFLINE", "UV_REQUEST_TIMEOUT")
"""Prefixes of uv variables that stay when uv stands in for pip."""
_UVS_MARK = re.compile(r"uv\s*=")
SOURCE_NEEDED = re.compile(
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
    """Result of a dry run."""

    changes: tuple[Planned, ...] = ()
    refused: str | None = None
    """Reason of the error in which the command would end."""
    unknown: str | None = None
    """Reason why only a real run could tell."""
    own: frozenset[str] = frozenset()
    """The projects whose manifests the command may write: what they require today does not count."""


@dataclass(frozen=True)
class DryRunRequest:
    """A command, with its environment and shell variables."""

    uv: str
    command: PipCommand
    environment: Environment
    variables: Mapping[str, str]
    """Variables of the shell that would run the command."""
    offline: bool = False
    timeout_s: float | None = None


def foresee_removal(command: PipCommand, environment: Environment) -> DryRunResult:
    """Distributions that an uninstall would remove; this needs no dry run."""
    texts = [*(_name(text) for text in command.requirements)]
    # pip also uninstalls what a requirements file names, whatever its version limits are.
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
    """Run uv's dry run. Raises NetworkError and InstallerError if uv fails, InputError for a missing file."""
    uv_options.require_interpreter(asking.environment)
    command = asking.command
    files = command.requirements if command.verb == "sync" else command.files
    # uv asks the build backend of an editable project for its metadata even in a dry run, and that is foreign code.
    editable = next((file for file in files if has_editable(file)), None)
    if editable is not None:
        return DryRunResult(unknown=f"{editable} asks for an editable project, which would be built first")
    with tempfile.TemporaryDirectory(prefix="envmedic-guard-") as name:
        folder = Path(name)
        python = stand_in(asking, folder / "env")
        verb = "sync" if command.verb == "sync" else "install"
        options = [f"--python={python}", "--no-build", *_sources(asking), *_inputs(asking)]
        result = _run(asking, python, ["pip", verb, "--dry-run", *options])
        if result.returncode == 0:
            found = planned(result.stderr + result.stdout, asking.environment)
            return DryRunResult(found, unknown=_built_instead(asking, found, python, folder))
        error = error_from(result, (*command.requirements, *command.files, *command.editables))
        if isinstance(error, NoSolution | InstallerError):
            return _not_done(error, result)
        raise error


def _not_done(error: NoSolution | InstallerError, result: CommandResult) -> DryRunResult:
    """A refusal; an unknown result where only the unbuilt source archive stopped uv. Raises other errors."""
    if SOURCE_NEEDED.search(result.stderr + result.stdout):
        return DryRunResult(
            unknown=f"it would build from source first, and only that tells what it needs: {error.cause}"
        )
    if isinstance(error, InstallerError):
        raise error
    return DryRunResult(refused=error.cause or error.summary)


def _built_instead(asking: DryRunRequest, changes: Iterable[Planned], python: Path, folder: Path) -> str | None:
    """Reason why the command would build: a requested distribution has a newer release without wheels."""
    asked = _by_name(asking.command)
    new = {item.name for item in changes if item.after is not None}
    # With --no-build uv falls back to an older release that has wheels, where the real command would build the newest.
    # Two resolutions of the names, with and without that option, show the difference.
    if asking.command.only_wheels or asking.command.verb == "sync" or not any(name in new for name in asked):
        return None
    listed = folder / "asked.in"
    listed.write_text("".join(f"{text}\n" for name, text in asked.items() if name in new), encoding="utf-8")
    ask = ["pip", "compile", "--no-deps", "--no-header", "--no-annotate", f"--python={python}", *_sources(asking)]
    with_wheels, any_kind = (
        _run(asking, python, [*ask, *build, str(listed)]).stdout.splitlines()
        for build in (["--no-build"], _unbound(asking))
    )
    others = sorted(set(any_kind) - set(with_wheels))
    return f"it would build {', '.join(others)} from a source archive" if others else None


def _unbound(asking: DryRunRequest) -> list[str]:
    """Without --no-build, uv may build an archive for its metadata: none from an index that a foreign project states."""
    return [] if asking.environment.interpreter.named else ["--no-config"]


def _by_name(command: PipCommand) -> dict[str, str]:
    """Requested distributions that come from an index: requirement by name."""
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
    # `sources` is the part of the options that _sources has given already.
    yield from (item for item in command.options if item not in command.sources)
    if command.verb == "sync":
        yield from command.requirements
        return
    yield from (f"--requirements={path}" for path in command.files)
    if command.upgrade == "all":
        yield "--upgrade"
    elif command.upgrade == "named":
        wheels = (text.rpartition("/")[2] for text in command.requirements if text.endswith(".whl"))
        names = dict.fromkeys((*_by_name(command), *(filename.partition("-")[0] for filename in wheels)))
        yield from (f"--upgrade-package={name}" for name in names)
    yield "--"
    yield from command.requirements
    yield from command.editables  # not as --editable: uv then runs a build in spite of --no-build


def _sources(asking: DryRunRequest) -> Iterator[str]:
    """Index options: for pip, its configuration as uv options; uv reads its own configuration."""
    yield from ("--color=never", "--no-progress", "--no-python-downloads")
    if asking.offline and "--offline" not in asking.command.sources:
        yield "--offline"
    yield from asking.command.sources
    if asking.command.tool == "pip":
        yield "--no-config"
        yield from _for_pip(asking).arguments


def _for_pip(asking: DryRunRequest) -> uv_options.UvOptions:
    """The configuration of pip in uv's terms, without the variables of uv, which pip would not read."""
    variables = {name: value for name, value in asking.variables.items() if not name.startswith("UV_")}
    return uv_options.translate(_as_pip(asking), ResolveRequest(pins=()), variables)


def _as_pip(asking: DryRunRequest) -> IndexConfiguration:
    """Configuration of pip with the options of the command; uv's configuration does not count."""
    command, variables = asking.command, dict(asking.variables)
    if command.isolated:
        variables = {name: value for name, value in variables.items() if not name.startswith("PIP_")}
        # pip's --isolated ignores the user's configuration files too; these are found below HOME.
        variables |= {"HOME": os.devnull, "XDG_CONFIG_HOME": os.devnull}
    pip: PipConfiguration = configuration.read_pip(configuration.place(asking.environment), variables)
    pip = replace(
        pip,
        index_url=command.index_url or pip.index_url,
        extra_index_urls=(*pip.extra_index_urls, *command.extra_index_urls),
        find_links=(*pip.find_links, *command.find_links),
        trusted_hosts=(*pip.trusted_hosts, *command.trusted_hosts),
        no_index=pip.no_index or command.no_index,
    )
    return IndexConfiguration(pip=pip, uv=UvConfiguration())


def _run(asking: DryRunRequest, python: Path, arguments: Sequence[str]) -> CommandResult:
    timeout_s = asking.timeout_s or TIMEOUT_S
    return run_for(str(python), [asking.uv, *arguments], env=_variables(asking), timeout_s=timeout_s)


def _variables(asking: DryRunRequest) -> dict[str, str | None]:
    """Changes to this process's variables: those of the shell, without those that lead uv to another environment."""
    # None removes a variable of this process that the shell does not have.
    found: dict[str, str | None] = dict.fromkeys(name for name in os.environ if name not in asking.variables)
    found |= asking.variables
    found |= dict.fromkeys(_UNSET_ALWAYS)
    # uv runs git and keyring from PATH, and an activated environment has its own bin first: nothing in it may run.
    found["PATH"] = path_outside(asking.variables.get("PATH", ""), Path(asking.environment.real_prefix))
    if asking.command.tool == "pip":
        # pip would not read them.
        found |= {name: None for name in found if name.startswith("UV_") and not name.startswith(_UVS_OWN)}
        found |= _for_pip(asking).environment
    return found


def path_outside(path: str, prefix: Path) -> str:
    """PATH without the directories in `prefix`, from which uv and conda would run git, keyring and other helpers."""
    inside = os.path.realpath(prefix)
    return os.pathsep.join(item for item in path.split(os.pathsep) if not Path(item).resolve().is_relative_to(inside))


def stand_in(asking: DryRunRequest, folder: Path) -> Path:
    """Create the stand-in and return the path of its Python. Raises InstallerError."""
    environment = asking.environment
    python = python_for(environment.interpreter)
    argv = [
        asking.uv,
        "venv",
        "--no-config",
        "--no-project",
        "--no-python-downloads",
        f"--python={python}",
        str(folder),
    ]
    result = run_for(python, argv, env=_variables(asking), timeout_s=TIMEOUT_S)
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
    """Remove uv's mark from pyvenv.cfg if the environment has none: without it `uv pip sync` spares pip."""
    lines = real.read_text(encoding="utf-8").splitlines() if real.is_file() else []
    if not any(_UVS_MARK.match(line) for line in lines):
        kept = [line for line in stand_in.read_text(encoding="utf-8").splitlines() if not _UVS_MARK.match(line)]
        stand_in.write_text("\n".join(kept) + "\n", encoding="utf-8")


def _link(metadata: Path, site: Path) -> None:
    """Link the metadata into `site`, file by file: uv ignores a dist-info directory that is itself a link."""
    target = site / metadata.name
    if not metadata.is_dir():
        target.symlink_to(metadata)
        return
    target.mkdir(exist_ok=True)
    for file in metadata.iterdir():
        if not (target / file.name).exists():
            (target / file.name).symlink_to(file)


def planned(output: str, environment: Environment) -> tuple[Planned, ...]:
    """Parse uv's output: a line for each distribution that is removed (-), added (+) or reinstalled (~)."""
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
    """Version of a wheel or of a project with a static version. Raises InstallerError for any other."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    if name.endswith(".whl"):
        return str(parse_wheel_filename(name)[1])
    path = local_file(url)
    project = path / "pyproject.toml" if path is not None else None
    if project is not None and project.is_file():
        version = toml.loads(project.read_text(encoding="utf-8")).get("project", {}).get("version")
        if isinstance(version, str):
            return version
    raise InstallerError(
        f"The version of {url} is not known before it is built",
        hint="Build its wheel first, and ask about that",
    )
