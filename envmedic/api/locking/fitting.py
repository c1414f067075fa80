"""Use case ``check -r``: would what a file names work on a machine, before it is installed there. Changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from envmedic.api.context.observation import host_of, stage
from envmedic.api.context.settings import Settings
from envmedic.api.locking.project_exports import exported
from envmedic.compat.installed_requirements import markers
from envmedic.conda_meta import condarc
from envmedic.errors import InputError, NoSolution
from envmedic.installers.resolution import other_platforms
from envmedic.installers.uv import find_uv
from envmedic.locks import lock_format, named, reading
from envmedic.model.answers.fit import Fit, Fits, NamedPackages, Objection
from envmedic.model.facts import Gpu, Host
from envmedic.model.ports import ResolveRequest
from envmedic.planner.family import named_fit

PLATFORMS = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}


class Machine(msgspec.Struct, frozen=True):
    """The machine in question; what is not stated is that of ``--host``, or of this machine."""

    capabilities: tuple[str, ...] = ()
    """Compute capability of each GPU, such as ``12.0``."""
    driver: str | None = None
    python: str | None = None
    """``major.minor``."""


def check_files(settings: Settings, files: Sequence[Path], machine: Machine) -> Fits:
    """Return the answer for each file.

    Requirements without exact versions are resolved by uv for that machine. Raises InputError for a file that cannot be
    read, RepairPackageMissing where uv is needed and absent, NetworkError without a reachable index.
    """
    host = _host(settings, machine)
    return Fits(fits=tuple(_fit(settings, file, host, machine.python) for file in files))


def _host(settings: Settings, machine: Machine) -> Host:
    found = host_of(settings)
    if machine.capabilities:
        gpus = tuple(
            Gpu(index=number, name=f"GPU of compute capability {item}", compute_capability=item)
            for number, item in enumerate(machine.capabilities)
        )
        # what this machine has says nothing of one that is described
        found = Host(machine=found.machine, glibc=found.glibc, gpus=gpus, source="stated")
    return found if machine.driver is None else msgspec.structs.replace(found, driver_version=machine.driver)


def _fit(settings: Settings, file: Path, host: Host, wanted: str | None) -> Fit:
    text = _text(file)
    python = wanted or _python_of(file, text) or ".".join(map(str, sys.version_info[:2]))
    try:
        found = _Names(settings, host, python).of(file, text)
    except NoSolution as error:
        misfit = Objection(
            rule="resolution", package="", severity="error", text=error.cause or error.summary, source="uv"
        )
        return Fit(
            file=str(file),
            verdict="does-not-fit",
            summary=f"no set of versions fulfils it: {misfit.text}",
            python=python,
            driver=host.driver_version,
            capabilities=named_fit.capabilities(host),
            misfits=(misfit,),
        )
    return named_fit.judge(str(file), text, found, host, python)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(
            f"{file} cannot be read", cause=cause, hint="Give a lock, or a file of requirements"
        ) from error


def _python_of(file: Path, text: str) -> str | None:
    """The Python that a conda environment names for itself."""
    if not lock_format.is_yaml(file):
        return None
    found = _yaml(file, text)
    named_python = named.of_environment(found, {}).python if "dependencies" in found else None
    return ".".join(named_python.split(".")[:2]) if named_python else None


def _yaml(file: Path, text: str) -> Mapping[str, object]:
    try:
        found = condarc.load(text)
    except ValueError as error:
        raise InputError(
            f"{file} is not YAML", cause=str(error), hint="Give a conda-lock.yml or an environment.yml"
        ) from error
    return found if isinstance(found, dict) else {}


class _Names:
    """Reads what files name for one machine and Python."""

    def __init__(self, settings: Settings, host: Host, python: str) -> None:
        self._settings, self._host, self._python = settings, host, python
        self._markers = markers(named_fit.environment_of(NamedPackages(), host, python), host)

    def of(self, file: Path, text: str) -> NamedPackages:
        """Return the packages that `file`, with this `text`, names; requirements are resolved. Raises as `check_files`."""
        tool = reading.project_tool(file)
        if tool == "uv":
            with exported(file) as pylock:
                return named.of_pylock(pylock.read_text(encoding="utf-8"), str(file), self._markers)
        if lock_format.is_yaml(file) and lock_format.has_dependencies(text):
            return named.of_environment(_yaml(file, text), self._markers)
        if lock_format.is_yaml(file) or tool is not None:  # of other tools it says how they export it
            return named.of_lock(reading.read(file, PLATFORMS.get(self._host.machine)))
        if file.suffix == ".toml":
            return named.of_pylock(text, str(file), self._markers)
        return self._requirements(file, text)

    def _requirements(self, file: Path, text: str) -> NamedPackages:
        found = named.of_requirements(text, self._markers)
        # a complete list of hashes is a lock; everything else takes more packages than it names
        if not found.loose and "--hash" in text:
            return found
        settings = self._settings
        request = ResolveRequest(
            pins=(), find_links=settings.find_links, offline=settings.offline, torch_index=settings.torch_index
        )
        with stage(settings.stream, "resolve"):
            pylock = other_platforms.of_file(
                find_uv(), file, python=self._python, machine=self._host.machine, request=request
            )
        whole = named.of_pylock(pylock, str(file), self._markers)
        lines = {item.name: item.line for item in found.packages}
        placed = (msgspec.structs.replace(item, line=lines.get(item.name, 0)) for item in whole.packages)
        return NamedPackages(packages=tuple(placed), loose=whole.loose)
