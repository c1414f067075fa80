"""Findings of a diagnosis, with their evidence."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.base import Model
from envmedic.model.facts import Facts
from envmedic.model.registries.faults import FAULT_CLASSES, Fault

DIAGNOSIS_SCHEMA: Final = "envmedic.diagnosis/1"
DIAGNOSES_SCHEMA: Final = "envmedic.diagnoses/1"

PLAINLY: Final = 0.66
"""Confidence from which a text says plainly what is wrong; below it another cause is not much less likely."""

FixKind = Literal[
    "reinstall-matching-wheel",
    "purge-duplicates",
    "rebuild-extension",
    "pin-package",
    "change-env-var",
    "change-cuda-toolkit",
    "replace-package",
    "import-order",
    "pin-build-dep",
    "host-compiler",
    "upgrade-driver",
    "change-host",
    "not-an-env-problem",
    "other",
]


def of_host(fault: Fault | None, fix_kind: FixKind | None) -> bool:
    """Whether the machine is at fault, so that no repair of an environment helps."""
    # some classes are of the host or of the environment, case by case: there the signature's way of repair decides
    return fix_kind in {"upgrade-driver", "change-host"} or (fault is not None and FAULT_CLASSES[fault].of_host)


def of_shell(fault: Fault | None) -> bool:
    """Whether a variable of the user's shell is at fault, which neither the environment nor the machine sets."""
    return fault == "shell-variable"


Verdict = Literal["healthy", "env", "host", "shell", "not-an-env-problem", "unknown"]


class Evidence(Model, frozen=True, kw_only=True):
    """One observation for or against a finding."""

    kind: Literal["text", "fact"]
    where: str
    """``log:LINE``, a file of the environment, or the key of a fact."""
    what: str
    """The matching line of the log, or the observed value."""
    sentence: str = ""
    """The observation as people say it; empty where ``what`` is all there is to say."""
    supports: bool = True

    @property
    def told(self) -> str:
        """It for people."""
        return self.sentence or self.what


class Alternative(Model, frozen=True, kw_only=True):
    """Another way to repair the same finding, and why it was not chosen."""

    title: str
    why_not: str


# Shown to people: "why not the obvious cause" is the first question to a diagnosis.
class Rejected(Model, frozen=True, kw_only=True):
    """A cause that was considered and refuted, with its reason."""

    signature: str
    fault: Fault
    reason: str


class Finding(Model, frozen=True, kw_only=True):
    """A fault with its evidence. `confidence` is 0..1; `confirmed` is None when facts cannot tell."""

    fault: Fault
    """The class of the fault."""
    playbook: str | None
    """Id of the playbook that repairs it, None where none does."""
    signature: str | None
    """Id of the matching signature, None when facts alone show the fault, and of a guess by the words of a text."""
    confidence: float
    """0 to 1; findings under 0.5 are listed, but make no verdict."""
    # Three values: an unobserved fact neither confirms nor refutes.
    confirmed: bool | None
    """By facts: true, false, or null where they cannot tell."""
    summary: str
    """The fault in one line."""
    evidence: tuple[Evidence, ...] = ()
    """Observations for and against it."""
    fix_kind: FixKind
    """How to repair it, in one word."""
    groups: dict[str, str] = {}
    """Named groups of the signature's match."""
    alternatives: tuple[Alternative, ...] = ()
    """Other ways to repair it."""
    rejected: tuple[Rejected, ...] = ()
    """Other causes that were considered and refuted."""
    latent: bool = False
    """Whether the facts show it while no program is known to suffer from it: it is repaired by name only."""
    named: bool = False
    """Whether the given text names what the facts show, of a `latent` one."""
    advice: tuple[str, ...] = ()
    """What mends it by hand."""
    consequences: tuple[Finding, ...] = ()
    """Confirmed findings that follow from it, and that its repair ends too."""

    @property
    def guessed(self) -> bool:
        """Whether only the words of a text speak for its class, which no signature recognises."""
        return self.playbook is None and self.signature is None and self.confirmed is None

    @property
    def with_consequences(self) -> tuple[Finding, ...]:
        """The finding, then what follows from it."""
        return (self, *self.consequences)


class Aside(Model, frozen=True, kw_only=True):
    """Something in the text that is no fault of an environment, said beside the answer."""

    text: str
    """The line of the text."""
    reason: str
    """What it is instead."""


class Obstacle(Model, frozen=True, kw_only=True):
    """Why ``apply`` would refuse to begin, or could not prove its repair here."""

    kind: Literal["protected", "unproven"]
    """The environment is to stay as it is, or checks of the repair cannot run on this machine."""
    text: str
    """What is in the way, in one line."""
    hint: str
    """What to do about it."""


class VersionMove(Model, frozen=True, kw_only=True):
    """A distribution that a repair would change."""

    name: str
    before: str | None = None
    """Installed version, null where there is none."""
    after: str | None = None
    """Version or limits afterwards, null where it goes."""


class RepairOutlook(Model, frozen=True, kw_only=True):
    """What the repair of the best finding would change, told without asking an index. A plan has the exact files."""

    title: str
    """The way, in words."""
    moves: tuple[VersionMove, ...] = ()
    """What changes, as far as it is known already."""
    more: int = 0
    """Number of further distributions that change."""
    torch: str | None = None
    """The installed torch, where it stays; null where it changes or is absent."""
    replaced_bytes: int = 0
    """Recorded size of what is replaced: what takes its place is of about that size."""


class Diagnosis(Model, frozen=True, kw_only=True):
    """The document of ``envmedic diagnose --json``. Findings are ordered, best first."""

    schema: Literal["envmedic.diagnosis/1"] = DIAGNOSIS_SCHEMA
    prefix: str | None
    """The environment, null if only a text was given."""
    facts: Facts | None
    """The observed facts, null if only a text was given."""
    verdict: Verdict
    """The result in one word."""
    findings: tuple[Finding, ...] = ()
    """Best first."""
    reason: str | None = None
    """For ``not-an-env-problem`` and ``unknown``: why."""
    also: tuple[Aside, ...] = ()
    """What else the text says that is no fault of an environment: out of memory, warnings, an interruption."""
    origin: tuple[str, ...] = ()
    """What the paths of the text say of where it was written: in another environment, on another operating system."""
    advice: tuple[str, ...] = ()
    """What would help, where no repair of an environment does."""
    examined: tuple[str, ...] = ()
    """What the facts of the environment were read from."""
    unexamined: tuple[str, ...] = ()
    """What was not looked at, so that nothing is known of it."""
    obstacles: tuple[Obstacle, ...] = ()
    """What would keep ``apply`` from beginning, or from proving a repair here."""
    repair: RepairOutlook | None = None
    """What the repair of the best finding would change; null without one, or where only a plan can tell."""
    differs: tuple[str, ...] = ()
    """Where environment, lock and manifest of the project disagree, with package, file and line of each."""
    log: str | None = None
    """Name of the log that was read."""
    importing: str | None = None
    """Module of an installed package whose import the last traceback of the log shows failing."""
    interrupted: str | None = None
    """The interrupted transaction on the environment, which `envmedic recover` settles; null without one."""

    @property
    def every(self) -> tuple[Finding, ...]:
        """The findings, each followed by its consequences."""
        return tuple(one for item in self.findings for one in item.with_consequences)

    @property
    def doubtful(self) -> bool:
        """Whether it is no sure answer: nothing sure was found, or what a text says by itself and not plainly."""
        first = self.findings[0] if self.findings else None
        return self.verdict == "unknown" or (
            first is not None and first.confirmed is None and first.confidence < PLAINLY
        )

    @property
    def undecided(self) -> bool:
        """Whether no fact has decided it: it is doubtful, or its best finding rests on a text alone."""
        return self.doubtful or any(item.confirmed is None for item in self.findings[:1])

    @property
    def explains(self) -> bool:
        """Whether it is an answer to what went wrong: a sure verdict by more than latent findings."""
        return self.verdict not in {"healthy", "unknown"} and not (
            self.findings and all(item.latent for item in self.findings)
        )


class Diagnoses(Model, frozen=True, kw_only=True):
    """Several diagnoses made in one call, in the order of the logs given."""

    schema: Literal["envmedic.diagnoses/1"] = DIAGNOSES_SCHEMA
    diagnoses: tuple[Diagnosis, ...]
    """One for each log, in the order given."""
