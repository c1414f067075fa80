"""A user's program that failed: what is kept of the failure, and what a check of it needs."""

from __future__ import annotations

from typing import Literal

from envmedic.model.base import Model

ProgramEnd = Literal["passed", "passed the point", "failed", "failed elsewhere"]
SHORTEST_S = 60.0
"""Least seconds without the reported error that a program is given by default."""
_PREFIXES = (
    "CUDA_", "CUDNN_", "TORCH_", "TORCHVISION_", "TORCHAUDIO_", "PYTORCH_", "NCCL_", "NVIDIA_", "PYTHON", "LD_", "OMP_",
    "KMP_", "MKL_", "OPENBLAS_", "GLOO_", "TRITON_", "TORCHINDUCTOR_",
)  # fmt: skip
_NAMES = frozenset({"PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX", "GLIBC_TUNABLES"})


def is_kept(name: str) -> bool:
    """Whether a case keeps the variable: it is about loading, CUDA, Python or paths."""
    return name in _NAMES or name.startswith(_PREFIXES)


def default_pass_after(failed_after_s: float) -> float:
    """Seconds without the reported error after which a program has passed, where the user gave none."""
    return max(SHORTEST_S, 2 * failed_after_s)


class Case(Model, frozen=True, kw_only=True):
    """The last failure of a program in one environment on one host."""

    prefix: str
    """The environment, without symbolic links."""
    host: str
    """Name of the machine."""
    when: str
    """RFC 3339, UTC."""
    argv: tuple[str, ...]
    """As the user typed it."""
    directory: str
    """Where it was started."""
    variables: dict[str, str]
    """Those of `is_kept`, without secrets."""
    prefixes: tuple[str, ...]
    """Spellings of the environment's path."""
    seconds: float
    """From its start to its failure."""
    ending: str
    """How it ended, in words."""
    text: str
    """What it printed and how it ended: beginning and end, without secrets."""


class ReportedError(Model, frozen=True, kw_only=True):
    """What tells the reported error in a later output of the program."""

    signature: str | None = None
    """Id of the signature that matched the text; null where none did."""
    message: str | None = None
    """Text of the last error in it; null where it shows none."""


class Program(Model, frozen=True, kw_only=True):
    """How a check runs the user's program, and when it has passed."""

    directory: str
    """Where it runs."""
    variables: dict[str, str]
    """Values of the variables on loading, CUDA, Python and paths; all others of these kinds are unset."""
    prefixes: tuple[str, ...]
    """Spellings of the environment's path, in whose place the path of the clone is put."""
    failed_after_s: float
    """Seconds after which it failed."""
    pass_after_s: float
    """Seconds without the reported error after which it has passed, and is stopped."""
    reported: ReportedError
    """The error that must not come again."""

    def limit_s(self, *, repaired: bool) -> float:
        """Seconds for one run; an environment that is not `repaired` yet has at least the time that the failure took."""
        return self.pass_after_s if repaired else max(self.pass_after_s, default_pass_after(self.failed_after_s))
