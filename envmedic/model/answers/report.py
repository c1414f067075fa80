"""A repair in short, to be shown to others: secrets and home directories are left out."""

from __future__ import annotations

from typing import Final, Literal, get_args

from envmedic.model.base import Model
from envmedic.model.record import DistributionChange

REPORT_SCHEMA: Final = "envmedic.report/1"
ReportForm = Literal["markdown", "svg", "html"]
FORMS: Final[tuple[ReportForm, ...]] = get_args(ReportForm)


class ReportedCheck(Model, frozen=True, kw_only=True):
    """A check before and after the repair."""

    check: str
    device: str | None = None
    before: str | None = None
    """Its outcome in the copy before the first step, null where it was not asked."""
    after: str
    """Its outcome after the last step."""
    seconds: float = 0.0
    reason: str = ""
    """Why it did not pass."""


class Report(Model, frozen=True, kw_only=True):
    """The document of ``envmedic report --json``."""

    schema: Literal["envmedic.report/1"] = REPORT_SCHEMA
    transaction: str
    """The transaction that it is about."""
    envmedic: str
    """Version that carried it out."""
    finished: str | None = None
    """RFC 3339, UTC."""
    outcome: str
    """``repaired``, ``partial``, ``installed``, ``snapshot`` or ``unchanged``."""
    undone: bool = False
    """Whether it was taken back since."""
    wrong: str
    """What was wrong, in one line."""
    fault: str | None = None
    """The class of the fault."""
    error: str | None = None
    """The line of the error text by which it was recognised."""
    changes: tuple[DistributionChange, ...] = ()
    """What differs in versions."""
    unchanged: int = 0
    """Number of packages that are as before."""
    steps: tuple[str, ...] = ()
    """What was done, in order."""
    checks: tuple[ReportedCheck, ...] = ()
    """Before beside after."""
    gpu: str = "not needed"
    """Whether it was proven on a GPU, and why not."""
    program: str = "not run"
    """How the user's program ended in the repaired copy."""
    left: tuple[str, ...] = ()
    """What stays wrong, with the reasons."""
    failure: str | None = None
    """Why nothing was changed, where nothing was."""
    seconds: dict[str, float] = {}
    """Wall-clock seconds of each stage."""
    machine: tuple[str, ...] = ()
    """Python, GPUs, driver and system, in words."""
    undo: str | None = None
    """The command that goes back; null where there is nothing to go back from."""

    @property
    def passed(self) -> int:
        """Number of checks that passed afterwards."""
        return sum(item.after == "pass" for item in self.checks)

    @property
    def skipped(self) -> int:
        """Number of checks that could not run here: these prove nothing."""
        return sum(item.after == "skip" for item in self.checks)

    @property
    def failed(self) -> int:
        """Number of checks that did not pass."""
        return len(self.checks) - self.passed - self.skipped

    @property
    def mended(self) -> int:
        """Number of checks that failed before and pass now."""
        return sum(item.after == "pass" and item.before not in {None, "pass", "skip"} for item in self.checks)

    @property
    def total_seconds(self) -> float:
        """How long all of it took."""
        return sum(self.seconds.values())
