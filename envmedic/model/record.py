"""Records of transactions, kept, shown and shared."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.errors import EnvmedicError
from envmedic.model.answers.witness import Witness
from envmedic.model.base import Model
from envmedic.model.checks import Outcome
from envmedic.model.events import EnvironmentNow
from envmedic.model.pins import FileDifference
from envmedic.model.plan import Plan, Purpose
from envmedic.model.program import ProgramEnd
from envmedic.redact import redact_text

RECORD_SCHEMA: Final = "envmedic.record/1"
HISTORY_SCHEMA: Final = "envmedic.history/1"
RECOVERY_SCHEMA: Final = "envmedic.recovery/1"
DIFF_SCHEMA: Final = "envmedic.diff/1"
ERROR_SCHEMA: Final = "envmedic.error/1"

State = Literal[
    "cloning", "repairing", "ready", "exchanged", "done", "undoing", "undone", "redoing", "aborted",
]  # fmt: skip
# Recovery has nothing to do in these states. An undo or redo may still begin from one.
FINAL_STATES: frozenset[State] = frozenset({"done", "undone", "aborted"})
COMPLETE_STATES: frozenset[State] = FINAL_STATES - {"aborted"}
"""Final states of transactions that made a generation."""


class DistributionState(Model, frozen=True, kw_only=True):
    """Name, version and owner of an installed distribution, before or after."""

    name: str
    version: str
    owner: str


class Round(Model, frozen=True, kw_only=True):
    """One round of the repair loop."""

    number: int
    """From 1."""
    plan_id: str
    """The plan that was carried out in it."""
    failed: tuple[str, ...]
    """Checks that failed after it, or what ended its steps."""
    because: str = ""
    """Why there was this round; empty for the first."""
    summary: str = ""
    """The fault that it was about, in one line."""


class Left(Model, frozen=True, kw_only=True):
    """A fault that a repair left."""

    summary: str
    """The fault, or the check that fails, in one line."""
    why: str
    """Why it was not repaired, or what the check says."""
    reported: bool
    """Whether the text, the command or the request was about it; such a one makes a repair partial."""


class Record(Model, frozen=True, kw_only=True):
    """The document of ``envmedic apply --json``."""

    schema: Literal["envmedic.record/1"] = RECORD_SCHEMA
    transaction: str
    """Its id; sorts by time."""
    parent: str | None = None
    """The transaction whose generation was live when this one began."""
    envmedic: str
    """Version that carried it out."""
    prefix: str
    """The environment as the user named it, made absolute."""
    state: State
    """How far it came; ``done``, ``undone`` and ``aborted`` are final."""
    environment: EnvironmentNow
    """What became of the environment. A snapshot leaves it ``unchanged``."""
    outcome: (
        Literal["repaired", "partial", "unchanged", "already", "installed", "snapshot", "changed", "refused", "failed"]
        | None
    ) = None
    """Whether what was reported is gone; ``partial`` is exit code 7, ``already`` a plan that this transaction had carried
    out before, so that nothing was done. ``installed``: the user's own command was carried out; ``snapshot``: one is kept.
    Null while it runs, and in records of version 0.1. For ``unchanged``, ``apply`` of a plan for a class prints the
    word that an error document has there."""
    left: tuple[Left, ...] = ()
    """Faults that stay, reported ones first."""
    program: ProgramEnd | Literal["not run"] = "not run"
    """How the user's program ended in the repaired clone. ``passed the point``: it was stopped after a time without the
    reported error. ``failed elsewhere``: by what is no fault of an environment, which decides nothing."""
    started: str
    """RFC 3339, UTC."""
    finished: str | None = None
    """RFC 3339, UTC; null while it runs."""
    plan: Plan
    """What was to be done."""
    clone: str = ""
    """How the environment was cloned: ``reflink``, ``link`` or ``copy``."""
    staging: str = ""
    """How commands saw the clone: ``namespace`` or ``relocate``."""
    exchange: str = ""
    """How the clone took the environment's place: ``exchange``, ``two-renames`` or ``link``."""
    gpu: Literal["verified", "not verified", "not needed"] = "not needed"
    """Whether kernels were proven on every visible GPU."""
    gpu_reason: str = ""
    """Why not, where they were not."""
    before: tuple[DistributionState, ...] = ()
    """Installed distributions before it."""
    after: tuple[DistributionState, ...] = ()
    """Installed distributions after it."""
    checks_before: tuple[Outcome, ...] = ()
    """Outcomes before the first step: of what can show the fault, and of what does not pass after the last one."""
    checks_after: tuple[Outcome, ...] = ()
    """Outcomes in the clone after the last step."""
    smoke: tuple[Outcome, ...] = ()
    """Outcomes in place, after the exchange."""
    witnesses: tuple[Witness, ...] = ()
    """Other machines that share the environment and were asked (``--witnesses``, ``--machines``)."""
    regressions: tuple[str, ...] = ()
    """What worked before and did not afterwards, each with its reason."""
    rounds: tuple[Round, ...] = ()
    """What each round of the repair loop failed on."""
    seconds: dict[str, float] = {}
    """Wall-clock seconds of each stage."""
    error: str | None = None
    """Why the environment is unchanged, when it is."""
    # `error` is one line for people; this one has the code and the exit code that scripts decide by.
    failure: ErrorDocument | None = None
    """The error behind `error` with its exit code; None when the transaction did what it was asked to."""
    extensions: tuple[Plan, ...] = ()
    """Plans that the repair loop added to `plan`, in order."""
    # Kept in the record, although none of it is in the environment: it explains the time and the rounds.
    abandoned: tuple[Plan, ...] = ()
    """Plans that were carried out in the clone and given up, since they did not prove themselves."""
    notes: tuple[str, ...] = ()
    """What the user should know."""
    project: Literal["", "edited", "restored", "left"] = ""
    """What became of manifest and lock of the project: written as the plan's `project_edit` says, put back, or left as
    they were found, since somebody had edited them. Empty where the repair was not to write them."""
    project_left: tuple[FileDifference, ...] = ()
    """Those files that were found edited, where they were left."""
    carried: tuple[str, ...] = ()
    """Files, relative to the prefix, that ``undo --keep-new`` copied from the repaired tree into the one from before."""


class Generation(Model, frozen=True, kw_only=True):
    """One entry of ``envmedic history``."""

    transaction: str
    """The transaction that made it."""
    parent: str | None
    """The transaction whose generation it was made from, null for the environment as it was found."""
    state: State
    """The transaction's state."""
    live: bool
    """Whether its repaired tree is at the prefix now."""
    started: str
    """RFC 3339, UTC."""
    finished: str | None
    """RFC 3339, UTC; null while it runs."""
    purpose: Purpose = "repair"
    """What it was made for."""
    text: str = ""
    """The command of an install, or the text of a snapshot."""
    playbook: str | None
    """Id of the playbook that was followed."""
    changes: tuple[str, ...]
    """What it changed, one line for each distribution."""
    undo_possible: bool
    """Whether ``undo`` can go back from it now."""
    redo_possible: bool
    """Whether ``redo`` can go to it now."""
    kept: bool = False
    """Whether the tree that is not at the prefix is kept: without it there is no way over this transaction."""
    tree: str | None = None
    """Path of the kept tree."""
    only_copies: tuple[str, ...] = ()
    """Files of the kept tree, relative to it, that were added or changed there and that the live tree does not have;
    ``.`` where that is unknown. Such a tree is removed only by ``envmedic prune --drop-new``."""
    size_bytes: int
    """Disk space that the kept tree holds alone."""


class KeepLimits(Model, frozen=True, kw_only=True):
    """How much is kept of old generations. A tree that is beyond any of the limits goes."""

    count: int | None = None
    """Number of trees."""
    since: str | None = None
    """RFC 3339, UTC: trees of transactions that ended before it go."""
    size_bytes: int | None = None
    """Disk space that the trees hold alone, together."""
    snapshots: bool = True
    """Whether snapshots count, and go."""


class KeptTree(Model, frozen=True, kw_only=True):
    """A tree that pruning removes."""

    transaction: str
    """The transaction that keeps it."""
    tree: str
    """Its path."""
    only_copies: tuple[str, ...]
    """As in `Generation`."""


class NewFiles(Model, frozen=True, kw_only=True):
    """The files of an environment that an undo takes out of sight, and that were not there after the repair.

    Paths are relative to the prefix.
    """

    tree: str
    """The tree that comes back, and that is kept with these files after the undo: its path."""
    files: tuple[str, ...]
    """Those that can be carried over."""
    taken: tuple[str, ...]
    """Those of which the tree that comes back has another file, link or directory in the way."""
    installed: tuple[str, ...]
    """Those of distributions that were installed since, which are to be installed again."""

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self.files or self.taken or self.installed)


class History(Model, frozen=True, kw_only=True):
    """The document of ``envmedic history --json``, newest first."""

    schema: Literal["envmedic.history/1"] = HISTORY_SCHEMA
    prefix: str
    """The environment."""
    generations: tuple[Generation, ...]
    """Every transaction, newest first."""
    interrupted: str | None = None
    """The interrupted transaction on the environment, which `envmedic recover` settles; null without one."""
    size_bytes: int = 0
    """Disk space that all of this holds alone: kept trees, fingerprints, records."""


class DistributionChange(Model, frozen=True, kw_only=True):
    """A distribution of which two states have different versions."""

    name: str
    """Its name."""
    before: str | None
    """Version in the first state, null where it is not installed."""
    after: str | None
    """Version in the second state, null where it is not installed."""


class Difference(Model, frozen=True, kw_only=True):
    """The document of ``envmedic diff --json``."""

    schema: Literal["envmedic.diff/1"] = DIFF_SCHEMA
    prefix: str
    """The environment."""
    before: str
    """The first state: the transaction that made it, or ``found`` for the state before the first repair."""
    after: str
    """The second state, of the same kind, or ``now`` for the current one."""
    distributions: tuple[DistributionChange, ...]
    """Distributions that differ, by name."""
    added: tuple[str, ...]
    """Paths relative to the environment that only the second state has; caches of byte code are left out."""
    removed: tuple[str, ...]
    """Paths that only the first state has."""
    changed: tuple[str, ...]
    """Paths of which size, time, mode, owner, capabilities, ACL or user attributes differ."""
    files_compared: bool = True
    """False where the list of the files of a state was removed with its tree: then only distributions are compared."""
    interrupted: str | None = None
    """The interrupted transaction on the environment, which `envmedic recover` settles; null without one."""

    @property
    def none(self) -> bool:
        """Whether the files of both states were compared and nothing differs."""
        return self.files_compared and not (self.distributions or self.added or self.removed or self.changed)


class ErrorDocument(Model, frozen=True, kw_only=True):
    """What stdout holds under ``--json`` when a command failed before it had a document."""

    schema: Literal["envmedic.error/1"] = ERROR_SCHEMA
    code: str
    """Stable name of the kind of error."""
    exit_code: int
    """What the command exits with."""
    summary: str
    """What happened."""
    cause: str | None
    """Why, as far as known."""
    hint: str | None
    """One thing to do next."""
    environment: str
    """``unchanged``, ``recoverable`` (``envmedic recover`` settles it) or ``changed``."""
    details: tuple[str, ...] = ()
    """More lines, such as every mistake of a file."""
    outcome: Literal["other-class", "changed", "refused", "failed"] | None = None
    """What became of a plan for a class (``plan --for-class``), which left the environment as it was: it is for another
    class, the environment has changed meanwhile, it could not begin, or its checks failed. Null for all else."""


def error_document(error: EnvmedicError) -> ErrorDocument:
    """`error` as ``envmedic.error/1``, without secrets: what went wrong may quote an option or a tool's output."""
    # every text, since a tool's message can quote a URL with a password
    return ErrorDocument(
        code=error.code,
        exit_code=int(error.exit_code),
        summary=redact_text(error.summary),
        cause=error.cause and redact_text(error.cause),
        hint=error.hint and redact_text(error.hint),
        environment=error.environment,
        details=tuple(map(redact_text, error.details)),
        outcome=error.outcome,
    )


class Recovery(Model, frozen=True, kw_only=True):
    """The document of ``envmedic recover --json``."""

    schema: Literal["envmedic.recovery/1"] = RECOVERY_SCHEMA
    prefix: str
    """The environment."""
    settled: tuple[Record, ...]
    """Records of the transactions that were settled; empty when none was interrupted."""
