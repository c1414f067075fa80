"""Checks: what is run to prove an environment, and what came out."""

from __future__ import annotations

from typing import Literal

from envmedic.model.base import Model

VERIFICATION_SCHEMA = "envmedic.verification/1"

Status = Literal["pass", "fail", "crash", "timeout", "skip"]
Role = Literal["playbook", "reproduction", "regression", "informative"]
Phase = Literal["before", "after", "smoke"]


class Check(Model, frozen=True, kw_only=True):
    """One check to run. `name` is that of a script in ``kernels/`` or of a built-in check."""

    name: str
    role: Role = "informative"
    gpu: bool = False
    """Needs a visible GPU; one outcome per visible GPU."""
    arguments: tuple[str, ...] = ()
    timeout_s: float = 300.0

    @property
    def required(self) -> bool:
        """Whether the exchange needs it passed."""
        return self.role != "informative"


class Outcome(Model, frozen=True, kw_only=True):
    """The result of one check on one device. Skipped is never passed."""

    check: str
    status: Status
    role: Role = "informative"
    device: str | None = None
    """``cpu``, ``cuda:0 NVIDIA H200`` or None where no device takes part."""
    seconds: float = 0.0
    max_relative_error: float | None = None
    """Largest relative error against the fp64 (or CPU) reference."""
    tolerance: float | None = None
    reason: str = ""
    """Why it was skipped, or the last line of the failure."""
    detail: str = ""
    """The end of its output, for a failure."""
    signal: str | None = None
    """Name of the signal that ended it, such as ``SIGSEGV``."""

    @property
    def key(self) -> tuple[str, str | None]:
        """Identifies the same check on the same device before and after."""
        return (self.check, self.device)


class Verification(Model, frozen=True, kw_only=True):
    """The document of ``envmedic verify --json``."""

    schema: str = VERIFICATION_SCHEMA
    prefix: str
    profile: str = "standard"
    gpu: Literal["verified", "not verified", "not needed"]
    gpu_reason: str = ""
    passed: bool
    outcomes: tuple[Outcome, ...]
    regressions: tuple[str, ...] = ()
