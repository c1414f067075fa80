"""Verify: the checks on an environment as it is."""

from __future__ import annotations

from pathlib import Path

from envmedic.api.joints import check_runner, installer_of
from envmedic.api.observation import observe, stage
from envmedic.api.settings import Settings
from envmedic.engine import verify as checks
from envmedic.engine.stage import DirectRunner
from envmedic.model.checks import PROFILES, Check, Profile, Verification, named_check
from envmedic.model.facts import Environment


def verify(
    settings: Settings, prefix: Path, names: tuple[str, ...], *, profile: Profile = "standard", no_gpu: bool = False
) -> Verification:
    """Run the named checks, or those of `profile`, in the live environment, which gets no byte code."""
    facts = observe(settings, prefix)
    if facts.environment is None:
        raise AssertionError
    chosen = tuple(_check(name, facts.environment, profile) for name in names or PROFILES[profile])
    run = check_runner(installer_of(settings), settings, no_gpu=no_gpu)
    with stage(settings.stream, "verify"):
        outcomes = run(chosen, DirectRunner(Path(facts.environment.real_prefix)), "after", settings.stream.emit)
    return checks.verification(str(prefix), outcomes, profile=profile, no_gpu=no_gpu)


def _check(name: str, environment: Environment, profile: Profile) -> Check:
    cuda = environment.torch is not None and environment.torch.cuda is not None
    names = tuple(sorted({word for item in environment.distributions for word in item.import_names}))
    return named_check(
        name, role="playbook", cuda_build=cuda, arguments=names if name == "import" else (), profile=profile
    )
