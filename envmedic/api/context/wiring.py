"""Dependency wiring: the installers, probes and checks that the engine receives as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from envmedic.api.context.observation import host_of, observe_clone
from envmedic.api.context.settings import Settings
from envmedic.api.context.target import EnvironmentTarget
from envmedic.model.checks import Check, Outcome, Phase
from envmedic.model.events import Emit
from envmedic.model.facts import Host
from envmedic.model.pins import ProjectEdit
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
    UserCommand,
    unedited,
)
from envmedic.model.record import Left
from envmedic.model.registries.installers import OF_WHEELS
from envmedic.model.registries.registry import complete
from envmedic.probe.machine import gpu
from envmedic.probe.packages import affected
from envmedic.probe.packages.distributions import states
from envmedic.probe.prefix import processes

if TYPE_CHECKING:
    from envmedic.api.planning.facts_check import FactsProof
    from envmedic.api.planning.program_judge import OutputJudge
    from envmedic.model.registries.installers import WheelInstaller


def installer_of(settings: Settings, prefix: Path | None = None) -> Installer:
    """Return the installer that the user chose, for the environment at `prefix`."""
    from envmedic.installers import pip, uv

    adapters: Mapping[WheelInstaller, type[uv.UvInstaller | pip.PipInstaller]] = complete(
        OF_WHEELS,
        {"uv": uv.UvInstaller, "pip": pip.PipInstaller},
        stated="`OF_WHEELS` in envmedic/model/registries/installers.py",
        add="what carries it out to `installer_of` in envmedic/api/context/wiring.py",
    )
    return adapters[settings.installer](prefix=prefix)


def require_repair_packages() -> None:
    """Raise RepairPackageMissing if only envmedic's core is installed."""
    from envmedic.installers import uv

    uv.require_repair_packages()


def conda_of(settings: Settings, prefix: Path) -> CondaInstaller:
    """Return the installer of conda packages for the environment whose real path is `prefix`."""
    from envmedic.installers.conda.conda_installer import CondaSide

    return CondaSide(prefix, executor=settings.conda_installer, timeout_s=settings.timeout_s)


def check_runner(
    settings: Settings, target: EnvironmentTarget, *, host: Callable[[], Host] | None = None, no_gpu: bool = False
) -> CheckRunner:
    """Return the function that runs checks, ``pip-check`` and ``facts`` included.

    `host` is the machine that the environment is judged for, by default that of `settings`.
    """
    installer = cache(partial(installer_of, settings, target.real))

    # once: a GPU that fills up meanwhile must not change what was compared before and after the steps
    devices = cache(gpu.free_devices)

    # one for all runs: it remembers which faults were refuted before the steps
    @cache
    def proof() -> FactsProof:
        from envmedic.api.planning.facts_check import FactsProof

        return FactsProof(settings, target.real, host or cache(partial(host_of, settings)))

    @cache
    def output_judge() -> OutputJudge:
        from envmedic.api.planning.program_judge import OutputJudge

        return OutputJudge(settings)

    def run(checks: Sequence[Check], runner: Runner, phase: Phase, emit: Emit) -> tuple[Outcome, ...]:
        from envmedic.api.context import check_seconds, lent_byte_code
        from envmedic.engine.verify import verification, waiting

        with proof().of_one_run(runner, asked=any(check.name == "facts" for check in checks)) as facts:
            outcomes = verification.run_checks(
                checks,
                runner,
                phase,
                emit,
                pip_check=installer().check_command(str(runner.python)),
                facts=facts,
                judge=output_judge() if any(check.program is not None for check in checks) else None,
                home=target.real,
                no_gpu=no_gpu,
                timeout_s=settings.timeout_s,
                devices=None if no_gpu or not any(check.gpu for check in checks) else devices(),
                earlier=check_seconds.load(target.real),
                byte_code=lent_byte_code.folder(target.real),
            )
        if phase == "after":
            check_seconds.keep(target.real, waiting.seconds_of(outcomes))
        return outcomes

    return run


def engine_ports(
    settings: Settings,
    target: EnvironmentTarget,
    *,
    confirm: Callable[[Plan], bool],
    extend: Callable[[ExtendRequest], PlanExtension | None] | None = None,
    conda: CondaInstaller | None = None,
    accept_partial: Callable[[tuple[Left, ...]], bool] | None = None,
    edits_project: Callable[[ProjectEdit], bool] = unedited,
    before_exchange: Callable[[Exchange], bool] | None = None,
    command: UserCommand | None = None,
) -> EnginePorts:
    """Return everything that a transaction on `target` uses from outside the engine."""
    concerned = affected.Affected()
    # the installer is made on first use: undo, redo and recovery need none, and import no installer
    return EnginePorts(
        installer=cache(partial(installer_of, settings, target.real)),
        distributions=states,
        processes=processes.users,
        gpu_visible=gpu.visible,
        confirm=confirm,
        extend=extend,
        conda=conda,
        observe=lambda tree: observe_clone(settings, tree, target.real),
        accept_partial=accept_partial,
        edits_project=edits_project,
        before_exchange=before_exchange,
        host=cache(partial(host_of, settings)),
        unaffected=concerned.unaffected,
        foresee=concerned.foresee,
        command=command,
    )
