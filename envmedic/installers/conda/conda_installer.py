"""Conda packages behind one interface: `CondaSide` implements `ports.CondaInstaller`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from envmedic.installers.conda.configuration import configuration
from envmedic.installers.conda.install import by_conda, carry_out, package_cache
from envmedic.installers.conda.solve import solving
from envmedic.model.conda import CondaArtifact, CondaChange, CondaExecutor, CondaRequest
from envmedic.model.events import Emit, Notice
from envmedic.model.facts import Environment, Host
from envmedic.model.ports import Runner
from envmedic.model.registries.installers import DEFAULT_OF_CONDA


class CondaSide:
    """Solver, downloads and installation of conda packages; py-rattler or the user's own conda carries a change out."""

    def __init__(
        self, prefix: Path | None = None, *, executor: CondaExecutor = DEFAULT_OF_CONDA, timeout_s: float | None = None
    ) -> None:
        """Parameters of every call.

        `prefix` is the environment's real path; `resolve` replaces it by that of the facts. `timeout_s` limits each
        call of the helper.
        """
        self._prefix = prefix
        self._executor = executor
        self._timeout_s = timeout_s

    def resolve(self, request: CondaRequest, environment: Environment, host: Host, emit: Emit) -> CondaChange:
        """The exact change. Raises NetworkError, NoSolution (with reasons), InstallerError or InputError."""
        self._prefix = Path(environment.real_prefix)
        if self._executor == "conda":
            by_conda.program(self._prefix)
        packages = environment.conda.packages if environment.conda is not None else ()
        found = configuration.read(self._prefix, packages)
        for note in found.notes:
            emit(Notice(code="conda-configuration", message=note, level="warning"))
        limit = self._timeout_s or solving.SOLVE_S
        return solving.Solver(environment, host, found, emit, None, self._executor, limit).change(request)

    def fetch(self, change: CondaChange, *, offline: bool, emit: Emit) -> None:
        """Bring the package files to this machine, verified. Raises NetworkError, IntegrityError or PreflightError."""
        place, limit = self._place, self._timeout_s or package_cache.FETCH_S
        # A function, not the configuration: to ask conda takes a second, which a complete cache saves.
        configured = partial(configuration.read, place)
        package_cache.fetch(change.install, configured, offline=offline, emit=emit, timeout_s=limit)

    def is_fetched(self, artifact: CondaArtifact) -> bool:
        """Whether a package file is on this machine already, so that nothing is downloaded."""
        return package_cache.is_there(artifact)

    def command(self, change: CondaChange, prefix: str) -> tuple[str, ...]:
        """Argv of the user's conda that installs the packages; empty for py-rattler, which has no command."""
        if change.executor != "conda":
            return ()
        commands = by_conda.commands(change, prefix, by_conda.program(Path(prefix)))
        # The plan shows one command per step: the install, or the removal where nothing is installed.
        return commands[-1] if commands else ()

    def carry_out(self, change: CondaChange, runner: Runner, emit: Emit, *, timeout_s: float | None = None) -> str:
        """Carry `change` out where `runner` runs commands. Raises InstallerError, IntegrityError or PreflightError."""
        return carry_out.carry_out(change, self._place, runner, emit, timeout_s or self._timeout_s)

    @property
    def _place(self) -> Path:
        if self._prefix is None:
            raise ValueError("CondaSide was given no prefix")
        return self._prefix
