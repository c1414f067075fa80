"""Checks: what is run to prove an environment, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from envmedic.errors import InputError
from envmedic.model.base import Model
from envmedic.model.findings import Fault
from envmedic.model.lock import LockDifference
from envmedic.model.playbook import Condition, Playbook

VERIFICATION_SCHEMA: Final = "envmedic.verification/1"

Status = Literal["pass", "fail", "crash", "timeout", "skip"]
Role = Literal["playbook", "reproduction", "regression", "informative"]
Phase = Literal["before", "after", "smoke"]
Profile = Literal["quick", "standard", "full"]
GpuVerdict = Literal["verified", "not verified", "not needed"]

CHECK_NAMES: Mapping[str, str] = MappingProxyType({
    "import": "each name given is imported in a process of its own",
    "import-sequence": "the names given are imported one after the other, ten times in fresh processes, without a crash",
    "torchvision-dispatch": "torchvision's operators are registered for CPU (and CUDA) by the right kernels",
    "torchvision-nms": "torchvision.ops.nms equals a reference in 64 bits, on CPU and every GPU",
    "torchvision-roi-align": "torchvision.ops.roi_align and its gradient equal a reference in 64 bits, on CPU and every GPU",
    "torchaudio-lfilter": "torchaudio.functional.lfilter and its gradient equal a reference in 64 bits, on every GPU",
    "device-memory": "a context opens, and bytes copied to a GPU, within it, from it and between GPUs arrive unchanged",
    "matmul": "matrix products in fp32 and bf16, on GPUs in TF32, fp16 and fp8 too, agree with fp64, on CPU and every GPU",
    "conv": "convolutions in fp32 (with gradients), bf16 and on GPUs fp16 agree with fp64, on CPU and every GPU",
    "fft": "Fourier transforms (cuFFT) equal their definition in 64 bits, on every GPU",
    "complex-kernels": "functions of complex numbers, which NVRTC compiles for the GPU present, equal a reference in 64 bits",
    "linalg": "factors and solutions (cuSOLVER) give the matrix back in 64 bits, on every GPU",
    "sparse": "products of sparse matrices (cuSPARSE) equal a reference in 64 bits, on every GPU",
    "attention": "scaled dot product attention and its gradients equal a reference in 64 bits, by each backend that is there",
    "autograd": "gradients of a small network agree with finite differences, on every GPU",
    "streams": "work on streams that wait for each other, and a replayed CUDA graph, have their exact results on every GPU",
    "all-reduce": "the sum of a process for each GPU (NCCL) arrives at all of them",
    "torch-compile": "a function compiled by torch.compile (Triton) equals a reference in 64 bits, on every GPU",
    "extension-smoke": "each extension package that is installed and known computes right, on every GPU",
    "extension-build": "a small extension compiles with torch's builder, loads and computes, on CPU and every GPU",
    "pip-check": "no distribution lacks a requirement that it had before",
    "facts": "no fact confirms the fault any more; without a playbook: none confirms a fault that was not there before",
    "command": "the user's own command exits with 0",
})  # fmt: skip
"""Every check that a playbook or ``verify --check`` may name, with what it proves."""

OF_GPU_LIBRARIES: tuple[str, ...] = (
    "device-memory", "fft", "complex-kernels", "linalg", "sparse", "attention", "autograd", "streams", "all-reduce",
    "torch-compile", "extension-smoke", "torchaudio-lfilter",
)  # fmt: skip
"""Checks of what CUDA builds bring for GPUs: they run on the CPU only where torch is no CUDA build and they are named."""

GPU_CHECKS: frozenset[str] = frozenset(
    {"torchvision-nms", "torchvision-roi-align", "matmul", "conv", "extension-build", *OF_GPU_LIBRARIES}
)
"""Checks that take part in GPU verification: `Check.gpu` makes no sense for the others."""

OF_A_FAULT: frozenset[str] = frozenset({"import-sequence", "facts", "command"})
"""Checks that are about a fault rather than about what an environment can do."""
COMPILING: frozenset[str] = frozenset({"torch-compile", "extension-build"})
"""Checks that run a compiler, which takes its time."""

PROFILES: Mapping[Profile, tuple[str, ...]] = MappingProxyType(
    {
        "quick": ("import", "torchvision-dispatch", "torchvision-nms", "device-memory"),
        "standard": tuple(name for name in CHECK_NAMES if name not in OF_A_FAULT | COMPILING),
        "full": tuple(name for name in CHECK_NAMES if name not in OF_A_FAULT),
    }
)
"""Checks of ``--profile``; ``full`` runs the numerical ones with `FULL_ROUNDS` different inputs, ``quick`` imports of
an environment with torch the torch family alone."""

_LIBRARIES: tuple[Fault, ...] = ("missing-cuda-library", "nvidia-wheel-conflict", "no-kernel-image")
"""What keeps kernels of NVIDIA's libraries from running."""
POINTS_TO: Mapping[str, tuple[Fault, ...]] = MappingProxyType({
    "import": (
        "half-installed", "extension-undefined-symbol", "companion-version", "missing-cuda-library",
        "nvidia-wheel-conflict", "numpy-abi", "libstdcxx", "mkl-openmp", "duplicate-install",
    ),
    "import-sequence": ("native-crash", "mkl-openmp", "libstdcxx"),
    "torchvision-dispatch": ("torchvision-ops", "companion-version", "half-installed"),
    "torchvision-nms": ("torchvision-ops", "no-kernel-image", "companion-version"),
    "torchvision-roi-align": ("torchvision-ops", "no-kernel-image", "companion-version"),
    "torchaudio-lfilter": ("companion-version", "extension-undefined-symbol", "no-kernel-image"),
    "device-memory": ("gpu-host-fault", "driver-too-old", "cpu-only-torch"),
    "matmul": ("no-kernel-image", "missing-cuda-library", "nvidia-wheel-conflict", "gpu-host-fault"),
    "conv": ("cudnn-mismatch", "missing-cuda-library", "nvidia-wheel-conflict", "no-kernel-image"),
    "fft": _LIBRARIES,
    "complex-kernels": ("nvrtc-arch", "missing-cuda-library", "nvidia-wheel-conflict"),
    "linalg": _LIBRARIES,
    "sparse": _LIBRARIES,
    "attention": ("cudnn-mismatch", "no-kernel-image", "nvrtc-arch"),
    "autograd": ("no-kernel-image", "missing-cuda-library"),
    "streams": ("gpu-host-fault", "driver-too-old"),
    "all-reduce": ("missing-cuda-library", "nvidia-wheel-conflict", "gpu-host-fault"),
    "torch-compile": ("companion-version", "extension-build-toolchain", "nvrtc-arch"),
    "extension-smoke": ("no-kernel-image", "extension-undefined-symbol", "companion-version", "cuda-arch-list"),
    "extension-build": (
        "cuda-toolkit-mismatch", "cuda-arch-list", "extension-build-toolchain", "no-kernel-image",
    ),
    "pip-check": ("companion-version", "unsatisfiable", "half-installed"),
})  # fmt: skip
"""Check → the classes of fault that its failure speaks for, likeliest first. What it prints may say more."""

FULL_ROUNDS = 5


class Confirmation(Model, frozen=True, kw_only=True):
    """What the facts say where a fault is there: a playbook's `when` with all that it may name."""

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
        """That of a playbook; None for one that asks for no facts."""
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

    @property
    def required(self) -> bool:
        """Whether the exchange needs it passed."""
        return self.role != "informative"


def known_check(name: str) -> str:
    """Return `name` if a check is called so; raises `InputError` that names the nearest ones."""
    if name in CHECK_NAMES:
        return name
    import difflib  # noqa: PLC0415  # for a mistake alone

    near = difflib.get_close_matches(name, CHECK_NAMES, n=3, cutoff=0.5)
    raise InputError(
        f"there is no check {name!r}",
        cause=f"did you mean {' or '.join(near)}?" if near else None,
        hint="Known checks: " + ", ".join(CHECK_NAMES),
    )


def name_of(outcome: str) -> str:
    """Name of the check that an outcome called `outcome` is of, without its part or what it was about."""
    names = (name for name in CHECK_NAMES if outcome == name or outcome.startswith((f"{name}-", f"{name} ")))
    return max(names, key=len, default=outcome)


def named_check(
    name: str,
    *,
    role: Role = "informative",
    cuda_build: bool,
    arguments: tuple[str, ...] = (),
    profile: Profile = "standard",
) -> Check:
    """The check called `name`, with GPU outcomes where torch is a CUDA build and the check has them.

    `arguments` are the import names of ``import`` and the argv of ``command``. Raises `InputError`
    for an unknown name.
    """
    numerical = known_check(name) in GPU_CHECKS
    rounds = (f"rounds={FULL_ROUNDS}",) if numerical and profile == "full" else ()
    return Check(name=name, role=role, gpu=numerical and cuda_build, arguments=arguments + rounds)


class VerifyWish(Model, frozen=True, kw_only=True):
    """What of an environment is to be verified."""

    names: tuple[str, ...] = ()
    """Checks; where none is named, those of the profile."""
    profile: Profile = "standard"
    """Which checks, and how many inputs."""
    no_gpu: bool = False
    """Whether GPUs are left alone."""
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
    """``cpu``, ``cuda:0 NVIDIA H200`` or None where no device takes part."""
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
    applicable: bool = True
    """False when the check has no meaning on this device (bf16 on an old GPU); such a skip counts for nothing."""
    points_to: tuple[Fault, ...] = ()
    """Of a failure: the classes of fault that it speaks for, likeliest first."""
    excuse: str = ""
    """Why a failed import alone does not make an environment broken, such as ``seaborn is not installed``."""

    @property
    def key(self) -> tuple[str, str | None]:
        """Identifies the same check on the same device before and after."""
        return (self.check, self.device)


class Judgement(Model, frozen=True, kw_only=True):
    """What the outcomes before and after a repair say together."""

    passed: bool
    """Whether the exchange may take place."""
    regressions: tuple[str, ...] = ()
    """What worked before and does not now, each with its reason."""
    failed_required: tuple[str, ...] = ()
    skipped_required: tuple[str, ...] = ()
    not_reproduced: tuple[str, ...] = ()
    """Checks of the reported fault that did not fail before."""
    still_failing: tuple[str, ...] = ()
    """Failed before and fails still; told, but blocks nothing."""
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
    """The lock that the environment was held against, null without one."""
    compared: int = 0
    """Packages of the lock that were looked for."""
    differences: tuple[LockDifference, ...] = ()
    """Where the environment is not what the lock or its own records say; with any, it has not passed."""
    unproven: tuple[str, ...] = ()
    """Packages of the lock's version of which it is not known from which file they were installed."""
