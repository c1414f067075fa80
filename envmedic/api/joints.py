"""Joins the packages: what the engine needs of installers, probe and diagnosis, as one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from envmedic.api.settings import Settings
from envmedic.engine import verify
from envmedic.model.checks import Check, Outcome, Phase
from envmedic.model.events import Emit
from envmedic.model.plan import Plan
from envmedic.model.ports import CheckRunner, EnginePorts, ExtendRequest, Installer, Runner
from envmedic.probe import gpu, processes
from envmedic.probe.distributions import states
from envmedic.probe.environment import observe_environment


def installer_of(settings: Settings, prefix: Path | None = None) -> Installer:
    """The installer that the user chose, for the environment at `prefix`."""
    from envmedic.installers import pip, uv  # noqa: PLC0415  # only where something is resolved or installed

    return (pip.PipInstaller if settings.installer == "pip" else uv.UvInstaller)(prefix=prefix)


def check_runner(installer: Installer, settings: Settings, *, no_gpu: bool = False) -> CheckRunner:
    """Runs checks, with the installer's own list of unmet requirements among them."""

    def run(checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
        return verify.run_checks(
            checks,
            runner,
            phase,
            emit,
            pip_check=installer.check_command(str(runner.python)),
            no_gpu=no_gpu,
            timeout_s=settings.timeout_s,
        )

    return run


def engine_ports(
    installer: Installer,
    *,
    confirm: Callable[[Plan], bool],
    extend: Callable[[ExtendRequest], Plan | None] | None = None,
) -> EnginePorts:
    """Everything that a transaction uses from outside the engine."""
    return EnginePorts(
        installer=installer,
        distributions=states,
        processes=processes.users,
        gpu_visible=gpu.visible,
        confirm=confirm,
        extend=extend,
        observe=observe_environment,
    )
