"""uv as the installer: resolution, and the commands that install the fetched wheels."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from envmedic.errors import InstallerError, RepairPackageMissing
from envmedic.installers import removal
from envmedic.installers.index import configuration
from envmedic.installers.resolution import build_options
from envmedic.model.events import Emit
from envmedic.model.facts import Environment
from envmedic.model.plan import CONSTRAINTS, Artifact, Install, Purge, Rebuild
from envmedic.model.ports import Resolution, ResolveRequest
from envmedic.proc import ask

Argv = tuple[str, ...]
_HELP_S = 60.0
_OLDEST = Version("0.9.9")
"""The first with ``--excludes`` of ``uv pip compile``; `pyproject.toml` asks for the same."""

_LEFT_ALONE = (
    *("UV_CACHE_DIR", "UV_NO_CACHE", "UV_CONCURRENT_", "UV_HTTP_", "UV_CUDA_DRIVER_VERSION"),
    *("UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_KEYRING_PROVIDER"),  # --no-index
    *("UV_NO_CONFIG", "UV_LINK_MODE", "UV_OFFLINE", "UV_NO_PROGRESS", "UV_PYTHON_DOWNLOADS"),  # options say so too
)
"""Prefixes of uv variables that do not change what a step does; every other uv variable is unset for it."""


def find_uv() -> str:
    """Path of uv: the one installed with envmedic, else on PATH. Raises `RepairPackageMissing`."""
    try:
        # The package's own lookup knows where pip puts scripts: also below --user, --target and --prefix.
        from uv import find_uv_bin

        return find_uv_bin()
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise RepairPackageMissing("uv")
    # PATH may hold relative directories, and steps run in another working directory.
    return _recent(str(Path(found).absolute()))


@cache
def _recent(uv: str) -> str:
    """Return `uv` if that one has every option that is used. Raises `InstallerError`."""
    told = ask((uv, "--version"), timeout_s=_HELP_S).stdout.split()
    if len(told) > 1 and Version(told[1]) < _OLDEST:
        raise InstallerError(
            f"{uv} is uv {told[1]}, and envmedic needs {_OLDEST} or newer",
            hint="Update it with `uv self update` or by the way it was installed, or: pip install 'envmedic[repair]'",
        )
    return uv


@cache
def uv_help(command: str) -> str:
    """The help text of ``uv COMMAND``, which has every option of that release. Raises `InstallerError`."""
    result = ask((find_uv(), *command.split(), "--help", "--color=never"), timeout_s=_HELP_S)
    if result.returncode != 0:
        raise InstallerError(
            f"`uv {command} --help` failed",
            cause=result.stderr.strip() or None,
            hint="Install uv beside envmedic: python -m pip install uv",
        )
    return result.stdout


def require_repair_packages() -> None:
    """Raise RepairPackageMissing where uv is absent, which every repair needs."""
    find_uv()


class UvInstaller:
    """Resolution, downloads and the commands of a step; implements `ports.Installer`.

    `prefix` is needed where only `fetch` is used: its ``pip.conf`` counts too.
    """

    def __init__(self, *, uv: str | None = None, prefix: Path | None = None) -> None:
        self._uv = uv
        self._prefix = prefix

    @property
    def uv(self) -> str:
        """Absolute path of uv. Raises `RepairPackageMissing` when there is none."""
        self._uv = self._uv or find_uv()
        return self._uv

    def resolve(self, request: ResolveRequest, environment: Environment, emit: Emit) -> Resolution:
        """Return exact wheels for the pins and their dependencies. Raises NetworkError, NoSolution, InstallerError."""
        del emit  # a resolution takes about a second: the stage event of the caller is enough
        from envmedic.installers.index import http as session
        from envmedic.installers.resolution import project_lock, resolve, uv_options

        names = frozenset(canonicalize_name(Requirement(pin).name) for pin in request.pins)
        sources = project_lock.indexes(environment, names)
        known = (configuration.with_login(item.url, item.name, os.environ) for item in sources)
        request = replace(request, indexes=tuple(dict.fromkeys((*request.indexes, *known))))
        self._prefix = configuration.place(environment)
        read = project_lock.configured(environment, configuration.read(self._prefix))
        # Constraints of an earlier `apply --pin` would refuse the very versions that this repair is about.
        own = Path(environment.real_prefix) / CONSTRAINTS
        told = uv_options.without_constraints(uv_options.translate(read, request), own)
        if request.without_files:
            told = uv_options.without_files(told)
        question = resolve.ResolveQuery(self.uv, request, environment, told)
        with session.opened(read) as http:
            return resolve.resolve(question, http)

    def fetch(self, artifacts: Sequence[Artifact], *, offline: bool, emit: Emit) -> None:
        """Fetch every wheel into the cache, verified. Raises NetworkError, IntegrityError, PreflightError."""
        from envmedic.installers.index import http as session
        from envmedic.installers.wheels import fetch

        with session.opened(configuration.read(self._prefix)) as http:
            fetch.fetch(artifacts, offline=offline, emit=emit, session=http)

    def commands(self, step: Purge | Install, python: str) -> tuple[Argv, ...]:
        """Argv of each command that carries `step` out in the environment of `python`."""
        if isinstance(step, Purge):
            names = removal.removable_names(step, python)
            return ((*self._base("uninstall", python), *names),) if names else ()
        return (self._install(step, python),) if step.artifacts else ()

    def _install(self, step: Install, python: str) -> Argv:
        folders = dict.fromkeys(str(Path(item.local_path).parent) for item in step.artifacts)
        return (
            *self._base("install", python),
            # The plan has decided everything: uv may neither resolve nor download nor build. Copies instead of hard
            # links keep a later edit in the environment out of uv's cache, and its cache out of the environment.
            *("--no-deps", "--no-index", "--offline", "--no-build", "--reinstall", "--link-mode=copy"),
            *(f"--find-links={folder}" for folder in folders),
            *(f"{item.name}=={item.version}" for item in step.artifacts),
        )

    def build_command(self, step: Rebuild, python: str) -> Argv:
        """Argv that builds the wheel of `step` without isolation; uv leaves it in a separate cache in the workshop."""
        return (*hide_user_settings(os.environ), self.uv, *build_options.arguments(step, python))

    def check_command(self, python: str) -> Argv:
        """Argv that exits 0 when every installed distribution's requirements are met, and lists those that are not."""
        return self._base("check", python)

    def _base(self, verb: str, python: str) -> Argv:
        return (
            *hide_user_settings(os.environ),
            self.uv,
            "pip",
            verb,
            "--no-config",
            "--no-progress",
            f"--python={python}",
        )


def hide_user_settings(environ: Mapping[str, str]) -> Argv:
    """First words of a command that hides the user's uv settings from uv; empty when there are none."""
    names = sorted(name for name in environ if name.startswith("UV_") and not name.startswith(_LEFT_ALONE))
    return ("/usr/bin/env", *(part for name in names for part in ("-u", name))) if names else ()
