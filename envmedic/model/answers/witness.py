"""A repair of one environment that several machines share: what each of them is asked, and what it answers."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.base import Model
from envmedic.model.checks import Check, GpuVerdict, Outcome
from envmedic.model.events import EnvironmentNow

QUESTION_SCHEMA: Final = "envmedic.question/1"
ANSWER_SCHEMA: Final = "envmedic.answer/1"
WITNESS_SCHEMA: Final = "envmedic.witness/1"


class WitnessQuestion(Model, frozen=True, kw_only=True):
    """What the repair asks the other machines, in a file beside its journal."""

    schema: Literal["envmedic.question/1"] = QUESTION_SCHEMA
    transaction: str
    """The repair."""
    number: int
    """From 1."""
    kind: Literal["use", "proof", "look"]
    """Which programs use the environment; that too, and whether the repaired copy passes its checks; whether the repaired
    environment is seen in its place, and works there."""
    machines: tuple[str, ...]
    """The machines that are to answer."""
    witnesses: tuple[str, ...]
    """Those of them that run the checks."""
    limit_s: float
    """Seconds in which the answers have to be there."""
    digest: str = ""
    """The digest of the repaired tree."""
    checks: tuple[Check, ...] = ()
    """The checks of the repair."""
    before: tuple[Outcome, ...] = ()
    """The outcomes of those that show the fault, where the repair is carried out, before its steps."""


class WitnessAnswer(Model, frozen=True, kw_only=True):
    """The answer of one machine."""

    schema: Literal["envmedic.answer/1"] = ANSWER_SCHEMA
    transaction: str
    """The repair."""
    number: int
    """The question."""
    kind: Literal["use", "proof", "look"]
    """What was asked."""
    machine: str
    """Its name."""
    digest: str = ""
    """The digest of the tree that it saw."""
    passed: bool
    """Whether it found nothing against the repair; programs that use the environment apart."""
    why: tuple[str, ...] = ()
    """What it found."""
    processes: tuple[str, ...] = ()
    """Programs there that run from the environment, or from a tree that is kept of it."""
    gpus: tuple[str, ...] = ()
    """Compute capabilities of its GPUs, each once."""
    gpu: GpuVerdict = "not needed"
    """Whether kernels were proven on all of them."""
    outcomes: tuple[Outcome, ...] = ()
    """What its checks said."""
    seconds: float = 0.0
    """How long it took."""


class Witness(Model, frozen=True, kw_only=True):
    """What a repair of a shared environment knows of another machine."""

    machine: str
    """Its name."""
    proved: bool = False
    """Whether the repaired copy passed the checks there, before it took the environment's place."""
    gpus: tuple[str, ...] = ()
    """Compute capabilities of its GPUs, each once."""
    gpu: GpuVerdict = "not needed"
    """Whether kernels were proven on all of them."""
    looked: bool = False
    """Whether it has seen the repaired environment in its place."""
    processes: tuple[str, ...] = ()
    """Programs there that used the environment, or a tree that is kept of it, when it answered last."""


class WitnessReport(Model, frozen=True, kw_only=True):
    """The document of ``envmedic fleet witness --json``."""

    schema: Literal["envmedic.witness/1"] = WITNESS_SCHEMA
    prefix: str
    """The environment."""
    machine: str
    """The name of this machine."""
    transaction: str | None = None
    """The repair that asked; null where none did."""
    answers: tuple[WitnessAnswer, ...] = ()
    """What was answered, in order."""
    processes: tuple[str, ...] = ()
    """With ``--users``: programs here that run from the environment, or from a tree that is kept of it."""
    environment: EnvironmentNow | None = None
    """How the repair ended; null where it did not within the limit."""
