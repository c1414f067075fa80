"""A playbook: one fault's signatures, confirming conditions, steps and checks, as read from YAML.

These structs are the one definition of the schema: the loader validates against the JSON schema
that is generated from them.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from envmedic.model.base import Model
from envmedic.model.findings import Fault, FixKind

Operator = Literal[
    "is", "is-not", "in", "not-in", "contains", "exists", "missing", "==", "!=", "<", "<=", ">", ">=", "matches",
]  # fmt: skip
Policy = Literal["keep-torch", "keep-cuda-variant", "newest"]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Identifier = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
FactValue = bool | int | float | str | tuple[str, ...] | None


class Strict(Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a playbook; unknown keys are mistakes."""


class Signature(Strict, frozen=True, kw_only=True):
    """A regular expression (RE2 syntax) over the lines of a log, with a sample that it must match."""

    id: Identifier
    pattern: Text
    sample: Text
    confidence: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.9
    summary: str | None = None
    """What the match means, with ``{group}`` and ``{fact}`` filled in."""
    fix_kind: FixKind | None = None


class Condition(Strict, frozen=True, kw_only=True):
    """Exactly one of: `fact` with `operator` (and `value`), `all`, `any`, `not`.

    Three-valued: a fact that was not observed makes its comparison unknown.
    """

    fact: str | None = None
    operator: Operator | None = None
    value: bool | int | float | str | tuple[str, ...] | None = None
    all: tuple[Condition, ...] | None = None
    any: tuple[Condition, ...] | None = None
    negated: Condition | None = msgspec.field(default=None, name="not")


class PurgeStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="purge"):
    """Remove distributions with their leftovers, duplicates and orphans."""

    distributions: tuple[Text, ...] = ()
    leftovers: bool = True
    duplicates: bool = True


class InstallStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="install"):
    """Install requirements from an index, in a CUDA variant where one is named."""

    requirements: tuple[Text, ...]
    index: str | None = None
    variant: str | None = None


class TorchFamilyStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="torch_family"):
    """Bring the torch family to a coherent set, by policies in order of preference."""

    policy: tuple[Policy, ...] = ("keep-torch", "keep-cuda-variant", "newest")
    members: tuple[Literal["torch", "torchvision", "torchaudio", "triton"], ...] = (
        "torch", "torchvision", "torchaudio", "triton",
    )  # fmt: skip


class RebuildStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="rebuild"):
    """Rebuild an extension from its recorded source for the GPUs present."""

    distribution: Text


class SetEnvStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="set_env"):
    """Variables kept in the environment."""

    variables: dict[str, str]


class UnsetEnvStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="unset_env"):
    """Variables removed on activation."""

    names: tuple[Text, ...]


class ReplaceStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="replace"):
    """Replace one distribution by another."""

    distribution: Text
    by: Text


class PinStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="pin"):
    """Constraints that stay."""

    constraints: tuple[Text, ...]


class AdviseStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="advise"):
    """What the user has to do."""

    text: Text


class CommandStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="command"):
    """A command; only from a playbook whose content the user has trusted."""

    argv: tuple[Text, ...]


PlaybookStep = (
    PurgeStep
    | InstallStep
    | TorchFamilyStep
    | RebuildStep
    | SetEnvStep
    | UnsetEnvStep
    | ReplaceStep
    | PinStep
    | AdviseStep
    | CommandStep
)


class Playbook(Strict, frozen=True, kw_only=True):
    """One fault and its repair."""

    id: Identifier
    fault: Fault
    title: Text
    explain: Text
    fix_kind: FixKind
    signatures: tuple[Signature, ...] = ()
    when: Condition | None = None
    vars: dict[str, str] = {}
    steps: tuple[PlaybookStep, ...]
    checks: tuple[Text, ...] = ()
    alternatives: tuple[Text, ...] = ()
    """Other ways to repair: the first sentence names the way, the rest says why it is not the first choice."""
    references: tuple[Text, ...] = ()


class LoadedPlaybook(Model, frozen=True, kw_only=True):
    """A playbook with where it came from."""

    playbook: Playbook
    path: str
    sha256: str
    """Of the file's bytes."""
    origin: Literal["shipped", "user", "file"]


class TextMatch(Model, frozen=True, kw_only=True):
    """A signature that matched a line of a log."""

    playbook: str
    signature: str
    line_number: int
    """1-based, in the log as given."""
    line: str
    """The line without escapes and prefixes, at most 500 characters."""
    groups: dict[str, str] = {}
    count: int = 1
    """Lines on which this signature matched with these groups."""
