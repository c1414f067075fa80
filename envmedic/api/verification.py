"""Verify: the checks on an environment as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from envmedic.api.joints import check_runner, installer_of
from envmedic.api.observation import observe, stage
from envmedic.api.settings import Settings
from envmedic.engine import verify as checks
from envmedic.engine.activated import ActivatedRunner
from envmedic.engine.interruption import Interruption
from envmedic.engine.stage import DirectRunner
from envmedic.model.checks import GPU_CHECKS, PROFILES, Check, Profile, Verification, named_check
from envmedic.model.facts import Environment, Facts
from envmedic.planner import imports


def verify(
    settings: Settings, prefix: Path, names: tuple[str, ...], *, profile: Profile = "standard", no_gpu: bool = False
) -> Verification:
    """Run the named checks, or those of `profile` that mean something here, in the live environment.

    It gets no byte code. The torch family must import; of the rest an import that only lacks a module that is not
    installed at all is told and does not decide.
    """
    return _checked(settings, prefix, observe(settings, prefix), names, profile=profile, no_gpu=no_gpu)


def verify_lock(
    settings: Settings,
    prefix: Path,
    lock: Path,
    names: tuple[str, ...] = (),
    *,
    profile: Profile = "standard",
    no_gpu: bool = False,
) -> Verification:
    """The same, and whether the environment is what the lock at that path says, its files as their records say.

    Raises InputError for what is no lock.
    """
    from envmedic.api.locks import lock_of  # noqa: PLC0415  # locks are loaded when asked
    from envmedic.locks import comparison, reading  # noqa: PLC0415

    wanted = reading.read(lock)
    facts = observe(settings, prefix)
    found = comparison.compare(wanted, lock_of(settings, facts))
    files = facts.environment.files if facts.environment is not None else None
    differences = (*found.differences, *comparison.damaged(files or ()))
    checked = _checked(settings, prefix, facts, names, profile=profile, no_gpu=no_gpu)
    return msgspec.structs.replace(
        checked,
        passed=checked.passed and not differences,
        lock=str(lock),
        compared=len(wanted.packages),
        differences=differences,
        unproven=found.unproven,
    )


def _checked(  # what a run of checks is made of
    settings: Settings, prefix: Path, facts: Facts, names: tuple[str, ...], *, profile: Profile, no_gpu: bool
) -> Verification:
    if facts.environment is None:
        raise AssertionError
    environment = facts.environment
    wanted = names or tuple(name for name in PROFILES[profile] if _meaningful(name, environment))
    chosen = tuple(check for name in wanted for check in _checks(name, environment, profile))
    real = Path(environment.real_prefix)
    run = check_runner(installer_of(settings), settings, prefix=real, host=lambda: facts.host, no_gpu=no_gpu)
    runner = ActivatedRunner(DirectRunner(real), real, Interruption())
    with stage(settings.stream, "verify"):
        outcomes = run(chosen, runner, "after", settings.stream.emit)
    return checks.verification(str(prefix), outcomes, profile=profile, no_gpu=no_gpu)


def _meaningful(name: str, environment: Environment) -> bool:
    """Whether what a check is about is installed."""
    needed = "torchvision" if name.startswith("torchvision-") else "torch" if name in GPU_CHECKS else None
    return needed is None or environment.distribution(needed) is not None


def _checks(name: str, environment: Environment, profile: Profile) -> Iterator[Check]:
    cuda = environment.torch is not None and environment.torch.cuda is not None
    if name != "import":
        yield named_check(name, role="playbook", cuda_build=cuda, profile=profile)
        return
    family = imports.family(environment)
    others = tuple(item for item in imports.main(environment.distributions) if item not in family)
    if family:
        yield named_check(name, role="playbook", cuda_build=cuda, arguments=family)
    if others or not family:
        yield named_check(name, cuda_build=cuda, arguments=others)
