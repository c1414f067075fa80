"""Use case ``verify``: checks on the live environment."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from envmedic.analysis.consumer_faults import kinds
from envmedic.api.context.gpu_condition import condition
from envmedic.api.context.observation import observe, stage
from envmedic.api.context.settings import Settings
from envmedic.api.context.target import EnvironmentTarget
from envmedic.api.context.wiring import check_runner
from envmedic.api.locking.locks import lock_of
from envmedic.api.locking.project_exports import read_lock
from envmedic.engine.stage.activated_runner import ActivatedRunner
from envmedic.engine.stage.runners import DirectRunner
from envmedic.engine.store.interruption import Interruption
from envmedic.engine.verify import verdict
from envmedic.errors import InputError, PreflightError
from envmedic.locks import comparison
from envmedic.model.base import from_json
from envmedic.model.checks import Check, Verification, VerifyWish, named_check
from envmedic.model.events import Notice
from envmedic.model.facts import Environment, Facts
from envmedic.model.registries.check_kinds import CHECKS, CONSUMER_CHECKS, GPU_CHECKS, PROFILES
from envmedic.planner import import_targets
from envmedic.probe.machine import gpu


def verify(settings: Settings, prefix: Path, wish: VerifyWish) -> Verification:
    """Run the named checks, or the applicable ones of the profile, in the live environment. Writes no byte code.

    The torch family must import. For other packages, an import that only misses a module of an absent distribution
    is reported and does not decide. Raises InputError for an invalid baseline.
    """
    # before the checks, which may take minutes: a wrong path should fail at once
    baseline = read_baseline(wish.baseline)
    return _checked(settings, prefix, observe(settings, prefix), wish, baseline)


def verify_lock(settings: Settings, prefix: Path, lock: Path, wish: VerifyWish) -> Verification:
    """Verify, and compare the environment with the lock at `lock` and its files with their records.

    Raises InputError for an invalid lock or baseline.
    """
    baseline = read_baseline(wish.baseline)
    wanted = read_lock(lock)
    facts = observe(settings, prefix)
    found = comparison.compare(wanted, lock_of(settings, facts))
    files = facts.environment.files if facts.environment is not None else None
    differences = (*found.differences, *comparison.damaged(files or ()))
    checked = _checked(settings, prefix, facts, wish, baseline)
    return msgspec.structs.replace(
        checked,
        passed=checked.passed and not differences,
        lock=str(lock),
        compared=len(wanted.packages),
        differences=differences,
        unproven=found.unproven,
    )


def read_baseline(path: str | None) -> Verification | None:
    """Return the verification that ``verify --json`` wrote to `path`. Raises InputError if it is none."""
    if path is None:
        return None
    hint = "Write one with `envmedic verify --json > FILE`"
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"The baseline {path} cannot be read", cause=error.strerror, hint=hint) from error
    return from_json(text, Verification, source=f"The baseline {path}", hint=hint)


def _checked(
    settings: Settings, prefix: Path, facts: Facts, wish: VerifyWish, baseline: Verification | None
) -> Verification:
    if facts.environment is None:
        raise AssertionError
    environment = facts.environment
    _require_start(environment)
    if environment.torch is None:
        text = f"There is no torch in {prefix}: what is checked is imports and requirements alone"
        settings.stream.emit(Notice(code="no-torch", message=text, level="warning"))
    wanted = wish.names or tuple(name for name in PROFILES[wish.profile] if _meaningful(name, environment))
    chosen = tuple(check for name in wanted for check in _checks(name, environment, wish))
    _tell_full_gpus(settings, chosen, wish)
    target, no_gpu = EnvironmentTarget(prefix, Path(environment.real_prefix)), wish.no_gpu
    run = check_runner(settings, target, host=lambda: facts.host, no_gpu=no_gpu)
    runner = ActivatedRunner(DirectRunner(target.real), target.real, Interruption())
    with stage(settings.stream, "verify"):
        outcomes = run(chosen, runner, "after", settings.stream.emit)
    before = None if baseline is None else verdict.comparable(baseline, wish.profile, wanted)
    found = verdict.verification(str(prefix), outcomes, profile=wish.profile, no_gpu=no_gpu, baseline=before)
    found = msgspec.structs.replace(found, baseline=wish.baseline)
    if wish.profile != "full" or no_gpu or settings.host_file is not None or not facts.host.gpus:
        return found
    health = condition(outcomes)
    return msgspec.structs.replace(found, gpu_health=health, warnings=(*found.warnings, *health.warnings))


def _tell_full_gpus(settings: Settings, chosen: tuple[Check, ...], wish: VerifyWish) -> None:
    if wish.no_gpu or not any(check.gpu for check in chosen):
        return
    told = gpu.full_devices()
    if told:
        settings.stream.emit(Notice(code="gpu-full", message=told, level="warning"))


def _require_start(environment: Environment) -> None:
    """Raise PreflightError if the environment's Python does not start, since no check could run."""
    if environment.interpreter.error is not None:
        raise PreflightError(
            f"The Python of {environment.prefix} does not start, so nothing can be checked",
            cause=environment.interpreter.error,
            hint="`envmedic explain broken-interpreter` says how to bring it back",
        )


def _meaningful(name: str, environment: Environment) -> bool:
    """Whether the subject of a check is installed."""
    if name in CONSUMER_CHECKS:
        return name in _consumers(environment)
    # a CPU build of torch is no fault, so checks of GPUs do not apply to it
    if CHECKS[name].devices == "gpu" and not _cuda_build(environment):
        return False
    if name == "extension-smoke":
        return bool(import_targets.extensions(environment.distributions))
    of_companion = next((item for item in ("torchvision", "torchaudio") if name.startswith(item + "-")), None)
    needed = of_companion or ("torch" if name in GPU_CHECKS else None)
    return needed is None or environment.distribution(needed) is not None


def _cuda_build(environment: Environment) -> bool:
    return environment.torch is not None and environment.torch.cuda is not None


def _consumers(environment: Environment) -> dict[str, bool]:
    """The checks of what computes without torch, and whether it is a build for the GPU."""
    return {kind.check: item.build is not None for kind, item in kinds(environment)}


def _checks(name: str, environment: Environment, wish: VerifyWish) -> Iterator[Check]:
    cuda_build = _consumers(environment).get(name, False) if name in CONSUMER_CHECKS else _cuda_build(environment)
    make = partial(named_check, name, cuda_build=cuda_build, profile=wish.profile, seed=wish.seed)
    if name == "extension-smoke":
        yield make(role="playbook", arguments=import_targets.extensions(environment.distributions))
        return
    if name != "import":
        yield make(role="playbook")
        return
    # two checks of imports: the torch family decides, while a failure of any other package is weighed by the verdict
    family = import_targets.family(environment)
    others = tuple(item for item in import_targets.main(environment.distributions) if item not in family)
    if family:
        yield make(role="playbook", arguments=family)
    if (others and not (family and wish.profile == "quick")) or not family:
        yield make(arguments=others)
