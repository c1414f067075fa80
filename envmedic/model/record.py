"""What a transaction did: the record that is kept, shown and shared."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.base import Model
from envmedic.model.checks import Outcome
from envmedic.model.plan import Plan

RECORD_SCHEMA: Final = "envmedic.record/1"
HISTORY_SCHEMA: Final = "envmedic.history/1"
RECOVERY_SCHEMA: Final = "envmedic.recovery/1"
ERROR_SCHEMA: Final = "envmedic.error/1"

State = Literal[
    "cloning", "repairing", "ready", "exchanged", "done", "undoing", "undone", "redoing", "aborted",
]  # fmt: skip
FINAL_STATES: frozenset[State] = frozenset({"done", "undone", "aborted"})


class DistributionState(Model, frozen=True, kw_only=True):
    """Name, version and owner of an installed distribution, before or after."""

    name: str
    version: str
    owner: str


class Round(Model, frozen=True, kw_only=True):
    """One round of the repair loop."""

    number: int
    plan_id: str
    failed: tuple[str, ...]
    """Checks that failed after it."""


class Record(Model, frozen=True, kw_only=True):
    """The document of ``envmedic apply --json``."""

    schema: Literal["envmedic.record/1"] = RECORD_SCHEMA
    transaction: str
    parent: str | None = None
    """The transaction whose generation was live when this one began."""
    envmedic: str
    prefix: str
    state: State
    environment: Literal["unchanged", "repaired", "restored"]
    started: str
    finished: str | None = None
    plan: Plan
    clone: str = ""
    staging: str = ""
    exchange: str = ""
    gpu: Literal["verified", "not verified", "not needed"] = "not needed"
    gpu_reason: str = ""
    before: tuple[DistributionState, ...] = ()
    after: tuple[DistributionState, ...] = ()
    checks_before: tuple[Outcome, ...] = ()
    checks_after: tuple[Outcome, ...] = ()
    smoke: tuple[Outcome, ...] = ()
    regressions: tuple[str, ...] = ()
    rounds: tuple[Round, ...] = ()
    seconds: dict[str, float] = {}
    """Wall-clock seconds of each stage."""
    error: str | None = None
    """Why the environment is unchanged, when it is."""
    failure: ErrorDocument | None = None
    """The error behind `error` with its exit code; None when the transaction did what it was asked to."""
    extensions: tuple[Plan, ...] = ()
    """Plans that the repair loop added to `plan`, in order."""
    notes: tuple[str, ...] = ()


class Generation(Model, frozen=True, kw_only=True):
    """One entry of ``envmedic history``."""

    transaction: str
    parent: str | None
    state: State
    live: bool
    """Whether its repaired tree is at the prefix now."""
    started: str
    finished: str | None
    playbook: str | None
    changes: tuple[str, ...]
    undo_possible: bool
    redo_possible: bool
    size_bytes: int
    """Disk space that the kept tree holds alone."""


class History(Model, frozen=True, kw_only=True):
    """The document of ``envmedic history --json``, newest first."""

    schema: Literal["envmedic.history/1"] = HISTORY_SCHEMA
    prefix: str
    generations: tuple[Generation, ...]


class ErrorDocument(Model, frozen=True, kw_only=True):
    """What stdout holds under ``--json`` when a command failed before it had a document."""

    schema: Literal["envmedic.error/1"] = ERROR_SCHEMA
    code: str
    exit_code: int
    summary: str
    cause: str | None
    hint: str | None
    environment: str
    details: tuple[str, ...] = ()


class Recovery(Model, frozen=True, kw_only=True):
    """The document of ``envmedic recover --json``."""

    schema: Literal["envmedic.recovery/1"] = RECOVERY_SCHEMA
    prefix: str
    settled: tuple[Record, ...]
    """Records of the transactions that were settled; empty when none was interrupted."""
