"""Use case ``create``: a new environment from a lock, verified against the lock."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from envmedic import xdg
from envmedic.api.context.observation import host_of, stage
from envmedic.api.context.settings import Settings
from envmedic.api.context.wiring import installer_of, require_repair_packages
from envmedic.api.locking.project_exports import read_lock
from envmedic.api.verification import verify_lock
from envmedic.engine.transaction import create as making
from envmedic.errors import InputError, InstallerError, IntegrityError
from envmedic.installers import uv
from envmedic.installers.conda.conda_installer import CondaSide
from envmedic.installers.conda.configuration import client, registration
from envmedic.installers.conda.install import creation
from envmedic.installers.conda.solve import virtual_packages
from envmedic.installers.resolution import install_lock, pythons
from envmedic.model.checks import Verification, VerifyWish
from envmedic.model.events import Notice, OutputLine, distinct
from envmedic.model.facts import Interpreter
from envmedic.model.lock import Lock, LockDifference
from envmedic.model.plan import Install
from envmedic.model.ports import CommandResult
from envmedic.model.registries.check_kinds import Profile
from envmedic.probe.prefix import finder

_ELSEWHERE = {"linux-64": ("linux", "x86_64"), "linux-aarch64": ("linux", "aarch64")}


@dataclass(frozen=True)
class NewPrefix:
    """The place of a new environment, as the user named it."""

    prefix: str | None = None
    name: str | None = None
    python: str | None = None
    """For a lock without conda packages: path or version of its Python."""


def create(
    settings: Settings, lock_file: Path, place: NewPrefix, *, profile: Profile = "standard", no_gpu: bool = False
) -> Verification:
    """Create the environment of a lock at an unused path, and verify it.

    After an error nothing remains. A failed check alone removes nothing. Raises InputError, NetworkError,
    IntegrityError, InstallerError, PreflightError.
    """
    require_repair_packages()
    wanted = read_lock(lock_file)
    prefix = _prefix(place, wanted)
    making.require_free(prefix)
    _require_platform(wanted, lock_file)
    with making.made(prefix) as site:
        _Work(settings, wanted, place, site).carry_out()
    found = verify_lock(settings, prefix, lock_file, VerifyWish(profile=profile, no_gpu=no_gpu))
    # a difference is an error of envmedic or of the files, a failed check perhaps one of the host: without a GPU, say
    if found.differences:
        making.remove(site.prefix)
        raise IntegrityError(
            "What was made is not what the lock says, and was removed",
            cause=_told(found.differences[0]),
            hint=f"Report it with the lock {lock_file}",
            details=tuple(map(_told, found.differences)),
        )
    if _has_conda(wanted):
        _register(settings, prefix)
    return found


def _register(settings: Settings, prefix: Path) -> None:
    """Add the environment to conda's list; a failure is only a warning."""
    try:
        registration.register(prefix, xdg.home(), has_conda=client.find(prefix) is not None)
    except OSError as error:
        text = (
            f"conda env list will not show {prefix}: {error.filename or '~/.conda/environments.txt'}: {error.strerror}"
        )
        settings.stream.emit(Notice(code="not-registered", message=text, level="warning"))


def _told(item: LockDifference) -> str:
    return f"{item.name}: {item.kind}: expected {item.expected or 'nothing'}, found {item.found or 'nothing'}"


def _prefix(place: NewPrefix, wanted: Lock) -> Path:
    if (place.prefix is None) == (place.name is None):
        raise InputError("create needs a place", hint="Name it with -p NEW, or a conda environment with -n NAME")
    if place.prefix is not None:
        return xdg.expanded(place.prefix).absolute()
    if not _has_conda(wanted):
        raise InputError("Only conda environments have names", hint="Name its directory with -p NEW")
    folders = finder.environment_directories(os.environ)
    # as conda does with envs_dirs: the first writable directory, else the last
    usable = next((folder for folder in folders if folder.is_dir() and os.access(folder, os.W_OK)), folders[-1])
    usable.mkdir(parents=True, exist_ok=True)
    return usable / (place.name or "")


def _has_conda(wanted: Lock) -> bool:
    return any(item.manager == "conda" for item in wanted.packages)


def _require_platform(wanted: Lock, lock_file: Path) -> None:
    known = _ELSEWHERE.get(wanted.platform)
    here = (os.uname().sysname.lower(), os.uname().machine)
    if wanted.platform and known != here:
        raise InputError(
            f"{lock_file} is for {wanted.platform}",
            cause=f"this machine is {here[0]} on {here[1]}",
            hint="Lock for this platform too: envmedic lock --platform",
        )


class _Work:
    """The creation of one environment at a site."""

    def __init__(self, settings: Settings, wanted: Lock, place: NewPrefix, site: making.Site) -> None:
        self._settings = settings
        self._wanted = wanted
        self._place = place
        self._site = site
        self._sources = install_lock.LockSources(uv.find_uv(), settings.find_links, offline=settings.offline)

    def carry_out(self) -> None:
        """Fetch all files and create the environment."""
        if _has_conda(self._wanted):
            self._by_conda()
            python = str(self._site.runner.python)
            version = next((item.version for item in self._wanted.packages if item.name == "python"), "")
            self._pip(Interpreter(path=python, starts=True, version=version) if version else None)
        else:
            self._pip(self._venv())

    def _by_conda(self) -> None:
        side, emit = (
            CondaSide(self._site.prefix, timeout_s=self._settings.timeout_s),
            distinct(self._settings.stream.emit),
        )
        change = creation.change([item for item in self._wanted.packages if item.manager == "conda"])
        with stage(self._settings.stream, "fetch"):
            side.fetch(change, offline=self._settings.offline, emit=emit)
            change = creation.add_metadata(change)
        for text in virtual_packages.unmet_requirements(change.install, host_of(self._settings)):
            emit(Notice(code="virtual-package", message=text, level="warning"))
        with stage(self._settings.stream, "make"):
            # an empty history marks a conda environment; the executor continues it with the first revision
            meta = self._site.tree / "conda-meta"
            meta.mkdir()
            (meta / "history").touch()
            side.carry_out(change, self._site.runner, emit)

    def _venv(self) -> Interpreter:
        path, version = pythons.find(self._sources.uv, self._wanted.python, given=self._place.python)
        # copies, so that the environment shares no files with uv's cache; no configuration and no downloads, so that
        # the lock and the user's Python alone decide
        argv = [self._sources.uv, "venv", "--no-config", "--no-project", "--no-python-downloads", "--allow-existing"]
        with stage(self._settings.stream, "make"):
            name = self._site.prefix.name
            self._run([*argv, "--link-mode=copy", f"--python={path}", f"--prompt={name}", str(self._site.seen)])
        return Interpreter(path=path, starts=True, version=version)

    def _pip(self, python: Interpreter | None) -> None:
        """Install the pip part: fetched and verified wheels, then builds from source."""
        wanted = [item for item in self._wanted.packages if item.manager == "pip"]
        if not wanted:
            return
        if python is None:
            raise InputError("The lock has pip packages and no Python", hint="Lock an environment that has a Python")
        installer = installer_of(self._settings, self._site.prefix)
        with stage(self._settings.stream, "fetch"):
            found = install_lock.parts(wanted, python, self._sources)
            installer.fetch(found.artifacts, offline=self._settings.offline, emit=distinct(self._settings.stream.emit))
        target = str(self._site.runner.python)
        with stage(self._settings.stream, "make"), tempfile.TemporaryDirectory(prefix="envmedic-create-") as name:
            for argv in installer.commands(Install(artifacts=found.artifacts), target):
                self._run(argv)
            for built in install_lock.build_commands(found.built, target, Path(name), self._sources):
                self._run(built)

    def _run(self, argv: list[str] | tuple[str, ...]) -> None:
        source = Path(argv[0]).name
        emit = self._settings.stream.emit
        result = self._site.runner(
            argv, on_line=lambda line: emit(OutputLine(source=source, line=line)), timeout_s=self._settings.timeout_s
        )
        if result.returncode != 0:
            raise _failed(result)


def _failed(result: CommandResult) -> InstallerError:
    lines = (result.stdout + result.stderr).splitlines()[-20:]
    how = f"was ended by signal {result.signal}" if result.signal else f"exited with status {result.returncode}"
    return InstallerError(
        f"{Path(result.argv[0]).name} {how}",
        cause=next((line.strip() for line in lines if line.startswith(("error:", "  cause:"))), None),
        hint="See the output above; nothing was left behind",
        details=(" ".join(result.argv), *lines),
    )
