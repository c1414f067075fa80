"""Checks that prove an environment, and their outcomes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from envmedic.errors import InputError
from envmedic.model.answers.gpu_health import HostGpus
from envmedic.model.base import Model
from envmedic.model.lock import LockDifference
from envmedic.model.playbook import Condition, Playbook
from envmedic.model.program import Program, ProgramEnd
from envmedic.model.registries.check_kinds import CHECK_NAMES, GPU_CHECKS, Profile
from envmedic.model.registries.faults import Fault

VERIFICATION_SCHEMA: Final = "envmedic.verification/1"

Status = Literal["pass", "fail", "crash", "timeout", "skip"]
Role = Literal["playbook", "reproduction", "regression", "informative"]
Phase = Literal["before", "after", "smoke"]
GpuVerdict = Literal["verified", "not verified", "not needed"]

# Other inputs find faults that depend on values; each round costs the check's whole time again.
FULL_ROUNDS = 5


# Carried in the check: it is asked again in the clone, where neither the log nor the playbook is at hand.
class Confirmation(Model, frozen=True, kw_only=True):
    """The facts of an environment with the fault: a playbook's `when` with all values that it may name."""

    playbook: str
    """Id of the playbook."""
    when: Condition
    """True of an environment that has the fault."""
    groups: dict[str, str] = {}
    """Named groups of the text's match."""
    vars: dict[str, str] = {}
    """The playbook's own texts, with their placeholders."""

    @classmethod
    def of(cls, playbook: Playbook, groups: Mapping[str, str] = MappingProxyType({})) -> Confirmation | None:
        """The confirmation of a playbook; None without conditions on facts."""
        if playbook.when is None:
            return None
        return cls(playbook=playbook.id, when=playbook.when, groups=dict(groups), vars=playbook.vars)


class Check(Model, frozen=True, kw_only=True):
    """One check to run. `name` is that of a script in ``kernels/`` or of a built-in check."""

    name: str
    """See the list of checks."""
    role: Role = "informative"
    """Who asks for it; all but informative ones must pass."""
    gpu: bool = False
    """Needs a visible GPU; one outcome per visible GPU, beside that of the CPU."""
    arguments: tuple[str, ...] = ()
    """Import names, the command line, or settings of the check."""
    timeout_s: float = 300.0
    """Limit in seconds; exceeding it is a failure."""
    in_place: bool = False
    """Whether it is run once more when the repaired environment is at its own path; proofs always are."""
    confirmation: Confirmation | None = None
    """Of ``facts``: the fault that must be gone; without it, every fault that facts can confirm is asked for."""
    program: Program | None = None
    """Of ``command``: how it failed before, by which it is judged; without it, only exit status 0 passes."""

    @property
    def required(self) -> bool:
        """Whether the exchange needs it passed."""
        return self.role != "informative"


def known_check(name: str) -> str:
    """Return `name` if a check is called so; raises `InputError` that names the nearest ones."""
    if name in CHECK_NAMES:
        return name
    near = difflib.get_close_matches(name, CHECK_NAMES, n=3, cutoff=0.5)
    raise InputError(
        f"there is no check {name!r}",
        cause=f"did you mean {' or '.join(near)}?" if near else None,
        hint="Known checks: " + ", ".join(CHECK_NAMES),
    )


def name_of(outcome: str) -> str:
    """Name of the check that an outcome called `outcome` is of, without its part or what it was about."""
    # the longest name wins: one check's name may be the beginning of another's
    names = (name for name in CHECK_NAMES if outcome == name or outcome.startswith((f"{name}-", f"{name} ")))
    return max(names, key=len, default=outcome)


def named_check(
    name: str,
    *,
    role: Role = "informative",
    cuda_build: bool,
    arguments: tuple[str, ...] = (),
    profile: Profile = "standard",
    seed: int | None = None,
) -> Check:
    """The check called `name`, with GPU outcomes where torch is a CUDA build and the check has them.

    `arguments` are the import names of ``import`` and the argv of ``command``; `seed` is that of a numerical check's
    inputs, None for another one in each run. Raises `InputError` for an unknown name.
    """
    numerical = known_check(name) in GPU_CHECKS
    rounds = [f"rounds={FULL_ROUNDS}"] if numerical and profile == "full" else []
    seeds = [f"seed={seed}"] if numerical and seed is not None else []
    # without a CUDA build the GPU outcomes would be skips, which never count as passed
    return Check(name=name, role=role, gpu=numerical and cuda_build, arguments=(*arguments, *rounds, *seeds))


class VerifyWish(Model, frozen=True, kw_only=True):
    """The part of an environment to verify."""

    names: tuple[str, ...] = ()
    """Checks; where none is named, those of the profile."""
    profile: Profile = "standard"
    """Which checks, and how many inputs."""
    no_gpu: bool = False
    """Whether GPUs are left alone."""
    seed: int | None = None
    """Of the numbers that checks compute with; None takes another one in each run."""
    baseline: str | None = None
    """Path of an earlier verification; nothing may be worse than it says."""


class Outcome(Model, frozen=True, kw_only=True):
    """The result of one check on one device. Skipped is never passed."""

    check: str
    """Name of the check and, where it has several, of its part."""
    status: Status
    """How it ended."""
    role: Role = "informative"
    """Who asked for it."""
    device: str | None = None
    """``cpu``, ``cuda:0 NVIDIA H200`` or None for a check without a device."""
    seconds: float = 0.0
    """How long it ran."""
    max_relative_error: float | None = None
    """Largest relative error against the fp64 (or CPU) reference."""
    tolerance: float | None = None
    """Largest relative error that would pass."""
    reason: str = ""
    """Why it was skipped, or the last line of the failure."""
    detail: str = ""
    """The end of its output, for a failure."""
    signal: str | None = None
    """Name of the signal that ended it, such as ``SIGSEGV``."""
    # A skip that counts for nothing, unlike one for a missing GPU: that one keeps an environment from being verified.
    applicable: bool = True
    """False when the check has no meaning on this device (bf16 on an old GPU); such a skip counts for nothing."""
    points_to: tuple[Fault, ...] = ()
    """Of a failure: the classes of fault that it indicates, likeliest first."""
    # A package may need another one only for a part that nobody here uses.
    excuse: str = ""
    """Why a failed import alone does not make an environment broken, such as ``seaborn is not installed``."""
    program: ProgramEnd | None = None
    """Of ``command``: how the user's program ended; null where it did not run."""
    warnings: tuple[str, ...] = ()
    """What should be known although it passed, such as settings that make results less exact. It decides nothing."""
    figures: dict[str, float] = {}
    """What was measured, in the unit that its name ends with, such as ``memory_gb_s``."""

    @property
    def key(self) -> tuple[str, str | None]:
        """Identifies the same check on the same device before and after."""
        # Not the role: a check that a playbook asks for is compared with the same one of the profile.
        return (self.check, self.device)


class Judgement(Model, frozen=True, kw_only=True):
    """Judgement of the outcomes before and after a repair."""

    passed: bool
    """Whether the exchange may take place."""
    regressions: tuple[str, ...] = ()
    """What worked before and does not now, each with its reason."""
    failed_required: tuple[str, ...] = ()
    skipped_required: tuple[str, ...] = ()
    not_reproduced: tuple[str, ...] = ()
    """Checks of the reported fault that did not fail before."""
    lasting: tuple[str, ...] = ()
    """Required checks that failed before and fail still."""
    partial: bool = False
    """Whether all that keeps it from passing is `lasting`, while another required check failed before and passes now."""
    still_failing: tuple[str, ...] = ()
    """Checks that failed before and after; shown, but they block nothing."""
    gpu: GpuVerdict
    gpu_reason: str = ""


class Verification(Model, frozen=True, kw_only=True):
    """The document of ``envmedic verify --json``."""

    schema: Literal["envmedic.verification/1"] = VERIFICATION_SCHEMA
    prefix: str
    """The environment."""
    profile: str = "standard"
    """Which checks were chosen."""
    gpu: GpuVerdict
    """Whether kernels were proven on every visible GPU."""
    gpu_reason: str = ""
    """Why not, where they were not."""
    passed: bool
    """Whether every check passed that had to."""
    outcomes: tuple[Outcome, ...]
    """In the order in which they ran."""
    baseline: str | None = None
    """The earlier verification that this one was compared with, null without one."""
    regressions: tuple[str, ...] = ()
    """What a given baseline passed and this does not."""
    as_before: tuple[str, ...] = ()
    """What does not pass and did not in the baseline either: it does not decide."""
    better: tuple[str, ...] = ()
    """What failed in the baseline and passes now."""
    excused: tuple[str, ...] = ()
    """Imports that fail and do not decide, each with why: what they need is not installed."""
    lock: str | None = None
    """The lock that the environment was compared with, null without one."""
    compared: int = 0
    """Packages of the lock that were looked for."""
    differences: tuple[LockDifference, ...] = ()
    """Where the environment is not what the lock or its own records say; with any, it has not passed."""
    unproven: tuple[str, ...] = ()
    """Packages of the lock's version of which it is not known from which file they were installed."""
    gpu_health: HostGpus | None = None
    """The condition of the GPUs right after the checks, with the profile ``full``."""
    warnings: tuple[str, ...] = ()
    """What checks and GPUs give to look into, each once. It decides nothing."""
    interrupted: str | None = None
    """The interrupted transaction on the environment, which `envmedic recover` settles; null without one."""
