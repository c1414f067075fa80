"""Playbooks: one fault's signatures, confirming conditions, steps and checks, as read from YAML.

These structs define the schema: the loader validates against the JSON schema generated from them.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from envmedic.model.base import Model
from envmedic.model.findings import FixKind
from envmedic.model.registries.faults import Fault
from envmedic.model.registries.remedies import REMEDIES

Operator = Literal[
    "is", "is-not", "in", "not-in", "contains", "exists", "missing", "==", "!=", "<", "<=", ">", ">=", "matches",
]  # fmt: skip
Policy = Literal["keep-torch", "keep-release", "keep-cuda-variant", "default-index", "newest"]
"""``keep-release`` is the same release of torch in another CUDA variant."""
Text = Annotated[str, msgspec.Meta(min_length=1)]
Identifier = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
LOADED_PLAYBOOK_SCHEMA: Final = "envmedic.loaded-playbook/1"
VALIDATION_SCHEMA: Final = "envmedic.validation/1"
# None is a value: looked for and absent. A fact that was not observed has no entry.
FactValue = bool | int | float | str | tuple[str, ...] | None


# A misspelt key of an optional field would otherwise be ignored, and the playbook would do less than it says.
class Strict(Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a playbook; unknown keys are mistakes."""


class Signature(Strict, frozen=True, kw_only=True):
    """A regular expression (RE2 syntax) over the lines of a log, with a sample that it must match."""

    id: Identifier
    """Unique in the playbook; findings name it."""
    # RE2 searches in linear time: a playbook of a stranger cannot make a scan of a log hang.
    pattern: Text
    """RE2 syntax: no look-around, no backreferences. Named groups ``(?P<name>…)`` can be used in texts."""
    sample: Text
    """A message that the pattern finds; the loader tries it."""
    confidence: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.9
    """Confidence from the text alone; below 0.5 it is a hint that several causes share."""
    summary: str | None = None
    """What the match means, with ``{group}`` and ``{fact}`` filled in; the playbook's title by default."""
    fix_kind: FixKind | None = None
    """How to repair it, if not as the playbook states; ``not-an-env-problem`` rules a repair out."""
    shell_line: Text | None = None
    """The line for the shell, if not as the playbook states."""
    symptoms: tuple[Fault, ...] = ()
    """Faults that only follow from it in the same text, where it is no fault itself."""


class Condition(Strict, frozen=True, kw_only=True):
    """Exactly one of: `fact` with `operator` (and `value`), `all`, `any`, `not`.

    Three-valued: a fact that was not observed makes its comparison unknown.
    """

    fact: str | None = None
    """Name of a fact, or of a group of the match."""
    operator: Operator | None = None
    """How the fact is compared; its type says which are allowed."""
    value: bool | int | float | str | tuple[str, ...] | None = None
    """What it is compared with, of the fact's type; versions are quoted."""
    all: tuple[Condition, ...] | None = None
    """True when each of them is."""
    any: tuple[Condition, ...] | None = None
    """True when one of them is."""
    # `not` is a keyword of Python; the YAML key stays
    negated: Condition | None = msgspec.field(default=None, name="not")
    """True when it is false."""


# The key `step` of the YAML chooses the struct of each step. The JSON schema gets one branch for each, so that a
# mistake is reported for the step that was meant.
class PurgeStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="purge"):
    """Remove distributions, every copy of them, with their leftovers and orphans."""

    distributions: tuple[Text, ...] = ()
    """Names of distributions; left out, the step is about leftovers alone."""
    leftovers: bool = True
    """Also what interrupted uninstalls left of them, or of anything where no distribution is named."""


class InstallStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="install"):
    """Install requirements from an index, in a CUDA variant where one is named."""

    requirements: tuple[Text, ...]
    """Such as ``numpy<2``."""
    index: str | None = None
    """URL of the index; the user's own by default."""
    variant: str | None = None
    """CUDA variant such as ``cu124``."""


# an enum in the schema only: mypy would need a Literal that repeats the registry
RemedyName = Annotated[str, msgspec.Meta(extra_json_schema={"enum": sorted(REMEDIES)})]


class RemedyStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="remedy"):
    """Remove, install and set what a remedy of envmedic decides on from the facts."""

    name: RemedyName
    """Name of the remedy."""


class TorchFamilyStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="torch_family"):
    """Bring the torch family to a coherent set, by policies in order of preference."""

    policy: tuple[Policy, ...] = ("keep-torch", "keep-cuda-variant", "newest")
    """What to keep, in order of preference."""
    members: tuple[Literal["torch", "torchvision", "torchaudio", "triton"], ...] = (
        "torch", "torchvision", "torchaudio", "triton",
    )  # fmt: skip
    """Which of the family may change, as far as they are installed."""


class RebuildStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="rebuild"):
    """Rebuild an extension from its recorded source for the GPUs present."""

    distribution: Text
    """Name of the distribution, or a fact that lists names."""


class ReinstallStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="reinstall"):
    """Install conda packages, installed ones again in the same build; wheels over them are removed, or conda's are."""

    packages: tuple[Text, ...]
    """Names of installed conda packages, match specs of others or of other releases, or facts that list either."""


class SetEnvStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="set_env"):
    """Variables kept in the environment."""

    variables: dict[str, str]
    """Names and values. One whose value only names a list has its texts joined by colons, and is left out where there
    are none."""


class UnsetEnvStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="unset_env"):
    """Variables removed on activation."""

    names: tuple[Text, ...]
    """Names of the variables."""


class ReplaceStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="replace"):
    """Replace one distribution by another."""

    distribution: Text
    """Name of the removed distribution."""
    by: Text
    """Requirement of the replacement."""


class PinStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="pin"):
    """Constraints that stay."""

    constraints: tuple[Text, ...]
    """Requirements such as ``numpy<2``."""


class AdviseStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="advise"):
    """What the user has to do."""

    text: Text
    """Sentences, with ``{group}`` and ``{fact}`` filled in."""


class CommandStep(Strict, frozen=True, kw_only=True, tag_field="step", tag="command"):
    """A command; only from a playbook whose content the user has trusted."""

    # Words instead of one text: a shell would interpret the text of a log in a placeholder.
    argv: tuple[Text, ...]
    """The program and its arguments, run without a shell."""


PlaybookStep = (
    PurgeStep
    | InstallStep
    | RemedyStep
    | TorchFamilyStep
    | RebuildStep
    | ReinstallStep
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
    """Lower-case words joined by hyphens; a shipped playbook's file is called so."""
    fault: Fault | None = None
    """The class of the fault; several playbooks may share one. Left out for what is no environment's fault."""
    title: Text
    """The fault in one line."""
    explain: Text
    """How it arises and why the steps repair it."""
    fix_kind: FixKind
    """How to repair it, in one word."""
    harmless: bool = False
    """Whether programs go on after it, so that it explains no failure beside it."""
    signatures: tuple[Signature, ...] = ()
    """Error texts that it is known by."""
    when: Condition | None = None
    """What the facts must say to confirm it; without it, a match of the text is all there is."""
    vars: dict[str, str] = {}
    """Texts by name, to be used as ``{name}``."""
    steps: tuple[PlaybookStep, ...]
    """The repair, in order."""
    shell_line: Text | None = None
    """The line that mends it in the shell that starts the program. Where all that it names has a value, the verdict is
    ``shell``."""
    checks: tuple[Text, ...] = ()
    """Names of checks that fail before the repair and must pass after it."""
    alternatives: tuple[Text, ...] = ()
    """Other ways to repair: the first sentence names the way, the rest says why it is not the first choice."""
    references: tuple[Text, ...] = ()
    """URLs of what the playbook relies on."""


class LoadedPlaybook(Model, frozen=True, kw_only=True):
    """A playbook with where it came from: the document of ``envmedic playbooks show --json``."""

    schema: Literal["envmedic.loaded-playbook/1"] = LOADED_PLAYBOOK_SCHEMA
    playbook: Playbook
    """Its content."""
    path: str
    """Its file."""
    sha256: str
    """Of the file's bytes."""
    origin: Literal["shipped", "user", "file"]
    """Whether it is shipped with envmedic, in the user's directory, or named as a file."""


class Validation(Model, frozen=True, kw_only=True):
    """The document of ``envmedic playbooks validate --json`` where no file has a mistake."""

    schema: Literal["envmedic.validation/1"] = VALIDATION_SCHEMA
    valid: tuple[str, ...]
    """The files, as they were named."""


class TextMatch(Model, frozen=True, kw_only=True):
    """A signature that matched a line of a log."""

    playbook: str
    signature: str
    line_number: int
    """1-based, in the log as given: of the first such line."""
    later_lines: tuple[int, ...] = ()
    """Of the next lines on which it matched with these groups: the first ones, and the last one."""
    line: str
    """The line without escapes and prefixes, at most 500 characters."""
    groups: dict[str, str] = {}
    count: int = 1
    """Lines on which this signature matched with these groups."""
    passing: bool = False
    """Whether the line is a warning or information, after which programs go on."""
    part: int = 0
    """Number of the part, where one line contains a whole text, as in JSON."""


class Failures(Model, frozen=True, kw_only=True):
    """The lines near the end of a text that tell of failures, by their numbers. Warnings are not among them."""

    raised: tuple[int, ...] = ()
    """Errors that Python raised; not those by which launchers repeat one."""
    last: frozenset[int] = frozenset()
    """Those of the last chain of exceptions."""
    message: str | None = None
    """Text of the last one."""
    importing: str | None = None
    """Module of an installed package whose import the traceback of the last one shows failing."""
    failing: frozenset[int] = frozenset()
    """Lines with any word of a failure, raised errors among them."""
    warned: frozenset[int] = frozenset()
    """Lines with such a word in a warning or information."""
    before: int = 0
    """Last line of an earlier output, after which the writer did something and more failed; 0 without one."""
    raised_in: tuple[str, ...] = ()
    """Modules in site-packages in which the last error was raised."""
    sources: tuple[str, ...] = ()
    """Modules in site-packages that the last error on a name, an attribute, an import or syntax was raised in or names."""
    whole: bool = False
    """Whether these are the failures of the whole text."""


class TextOrigin(Model, frozen=True, kw_only=True):
    """Where a text was written, as far as its paths tell."""

    prefixes: tuple[str, ...] = ()
    """Those of the environments in which its last error was raised."""
    system: str | None = None
    """The operating system, where all its paths are of another one than Linux."""
    path: str | None = None
    """The path that shows the operating system."""


class ReadText(Model, frozen=True, kw_only=True):
    """What was read in a text."""

    matches: tuple[TextMatch, ...] = ()
    """Every match of a signature, by line number. One repeated with the same groups is counted."""
    failures: Failures = Failures()
    """Lines near its end that tell of failures."""
    origin: TextOrigin = TextOrigin()
    """Where it was written, by the paths near its end."""
    around: tuple[tuple[int, str], ...] = ()
    """The last failures with the lines before and after each, without secrets: all lines near the end where none tells of a failure."""


NO_TEXT: Final = ReadText()
"""What is read where facts stand alone."""
