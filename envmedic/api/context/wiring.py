"""Joins the packages: what the engine needs of installers, probe and diagnosis, as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from envmedic.api.context.observation import host_of, observe_clone
from envmedic.api.context.settings import Settings
from envmedic.model.checks import Check, Outcome, Phase
from envmedic.model.events import Emit
from envmedic.model.facts import Host
from envmedic.model.plan import Plan
from envmedic.model.ports import (
    CheckRunner,
    CondaInstaller,
    EnginePorts,
    Exchange,
    ExtendRequest,
    Installer,
    PlanExtension,
    Runner,
)
from envmedic.model.registries.installers import OF_WHEELS
from envmedic.model.registries.registry import complete
from envmedic.probe.machine import gpu
from envmedic.probe.packages.distributions import states
from envmedic.probe.prefix import processes

if TYPE_CHECKING:
    from envmedic.api.planning.facts_check import FactsProof
    from envmedic.model.record import DistributionState
    from envmedic.model.registries.installers import WheelInstaller


def installer_of(settings: Settings, prefix: Path | None = None) -> Installer:
    """The installer that the user chose, for the environment at `prefix`."""
    from envmedic.installers import pip, uv

    adapters: Mapping[WheelInstaller, type[uv.UvInstaller | pip.PipInstaller]] = complete(
        OF_WHEELS,
        {"uv": uv.UvInstaller, "pip": pip.PipInstaller},
        stated="`OF_WHEELS` in envmedic/model/registries/installers.py",
        add="what carries it out to `installer_of` in envmedic/api/context/wiring.py",
    )
    return adapters[settings.installer](prefix=prefix)


def require_repair_packages() -> None:
    """Raise RepairPackageMissing before any work where envmedic's core alone is installed."""
    from envmedic.installers import uv  # only where something is resolved or installed

    uv.require_repair_packages()


def conda_of(settings: Settings, prefix: Path) -> CondaInstaller:
    """What solves and changes the conda packages of the environment whose real path is `prefix`."""
    from envmedic.installers.conda.conda_installer import CondaSide

    return CondaSide(prefix, executor=settings.conda_installer, timeout_s=settings.timeout_s)


def check_runner(
    installer: Callable[[], Installer],
    settings: Settings,
    *,
    prefix: Path,
    host: Callable[[], Host] | None = None,
    no_gpu: bool = False,
) -> CheckRunner:
    """Runs checks, with the installer's own list of unmet requirements and what facts say among them.

    `prefix` is the environment's real path; `host` the machine that it is judged for, by default as `settings` say.
    """

    @cache
    def proof() -> FactsProof:
        from envmedic.api.planning.facts_check import FactsProof

        return FactsProof(settings, prefix, host or cache(partial(host_of, settings)))

    def run(checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
        from envmedic.engine.verify import verification

        return verification.run_checks(
            checks,
            runner,
            phase,
            emit,
            pip_check=installer().check_command(str(runner.python)),
            facts=proof().of_one_run(),
            no_gpu=no_gpu,
            timeout_s=settings.timeout_s,
        )

    return run


def engine_ports(
    settings: Settings,
    installer: Callable[[], Installer],
    *,
    prefix: Path,
    confirm: Callable[[Plan], bool],
    extend: Callable[[ExtendRequest], PlanExtension | None] | None = None,
    conda: CondaInstaller | None = None,
    before_exchange: Callable[[Exchange], bool] | None = None,
) -> EnginePorts:
    """Everything that a transaction on the environment whose real path is `prefix` uses from outside the engine."""
    return EnginePorts(
        installer=installer,
        distributions=_states,
        processes=processes.users,
        gpu_visible=_gpu_visible,
        confirm=confirm,
        extend=extend,
        conda=conda,
        observe=lambda tree: observe_clone(settings, tree, prefix),
        before_exchange=before_exchange,
    )


def _states(tree: Path) -> tuple[DistributionState, ...]:
    return states(tree)


def _gpu_visible() -> tuple[bool, str]:
    return gpu.visible()
