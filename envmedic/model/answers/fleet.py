"""Answers of ``envmedic fleet`` about many machines, from the documents that they sent."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.answers.content import ContentDifference, EnvironmentClass
from envmedic.model.base import Model
from envmedic.model.findings import Diagnosis

SURVEY_SCHEMA: Final = "envmedic.fleet-survey/1"
DIAGNOSIS_SCHEMA: Final = "envmedic.fleet-diagnosis/1"
DRIFT_SCHEMA: Final = "envmedic.fleet-drift/1"
STATUS_SCHEMA: Final = "envmedic.fleet-status/1"
NodeEnd = Literal["repaired", "already", "partial", "other-class", "changed", "refused", "failed", "undone", "unknown"]


class SilentNode(Model, frozen=True, kw_only=True):
    """A machine that sent no usable document."""

    node: str
    """Its name."""
    why: str
    """What there is in place of one."""


class FleetClass(Model, frozen=True, kw_only=True):
    """Machines for whose environment one plan is right."""

    name: str
    """A letter: ``A`` for the largest class."""
    environment: EnvironmentClass
    """What they have in common."""
    nodes: tuple[str, ...]
    """Their names, sorted."""
    machine: tuple[str, ...] = ()
    """In what the machines differ from those of class A, in words."""
    content: tuple[ContentDifference, ...] = ()
    """In what the environments differ from those of class A, the first of each compared."""


class Survey(Model, frozen=True, kw_only=True):
    """The document of ``envmedic fleet survey --json``."""

    schema: Literal["envmedic.fleet-survey/1"] = SURVEY_SCHEMA
    classes: tuple[FleetClass, ...]
    """Largest first."""
    silent: tuple[SilentNode, ...] = ()
    """Machines without a usable document."""
    command: str = ""
    """With ``--on``: the command of Ansible or Slurm that collects the documents."""


class ClassDiagnosis(Model, frozen=True, kw_only=True):
    """What is wrong in a class of machines."""

    machines: FleetClass
    """The class."""
    diagnosis: Diagnosis
    """By the facts of its first machine, which are left out here."""


class FleetDiagnosis(Model, frozen=True, kw_only=True):
    """The document of ``envmedic fleet diagnose --json``."""

    schema: Literal["envmedic.fleet-diagnosis/1"] = DIAGNOSIS_SCHEMA
    classes: tuple[ClassDiagnosis, ...]
    """Largest first."""
    silent: tuple[SilentNode, ...] = ()
    """Machines without a usable document."""

    @property
    def healthy(self) -> bool:
        """Whether no fault is known in any class, and every machine has sent its facts."""
        return not self.silent and all(item.diagnosis.verdict == "healthy" for item in self.classes)


class NodeDrift(Model, frozen=True, kw_only=True):
    """A machine whose environment is not as it should be."""

    node: str
    """Its name."""
    differences: tuple[ContentDifference, ...]
    """What differs, from what it should be to what it is."""


class Drift(Model, frozen=True, kw_only=True):
    """The document of ``envmedic fleet drift --json``."""

    schema: Literal["envmedic.fleet-drift/1"] = DRIFT_SCHEMA
    against: str
    """The machine or file that all are compared with."""
    same: tuple[str, ...]
    """Machines with the same content."""
    drifted: tuple[NodeDrift, ...]
    """The others."""
    silent: tuple[SilentNode, ...] = ()
    """Machines without a usable document."""


class NodeStatus(Model, frozen=True, kw_only=True):
    """How a plan ended on one machine."""

    node: str
    """Its name."""
    outcome: NodeEnd
    """The `outcome` of its document; ``unknown`` where there is none, as after a machine has died."""
    plan: str = ""
    """Id of the plan for the class, else of the plan."""
    transaction: str = ""
    """The transaction that repaired it."""
    reason: str = ""
    """What kept it from being repaired."""


class ClassStatus(Model, frozen=True, kw_only=True):
    """How a rollout went on the machines of a class."""

    name: str
    """Its letter."""
    counts: dict[str, int]
    """Number of machines by outcome."""
    nodes: tuple[str, ...] = ()
    """Its machines, sorted."""


class FleetStatus(Model, frozen=True, kw_only=True):
    """The document of ``envmedic fleet status --json``."""

    schema: Literal["envmedic.fleet-status/1"] = STATUS_SCHEMA
    counts: dict[str, int]
    """Number of machines by outcome."""
    nodes: tuple[NodeStatus, ...]
    """Every machine, by name."""
    classes: tuple[ClassStatus, ...] = ()
    """The same by class, for the directory of a rollout."""

    @property
    def done(self) -> bool:
        """Whether every machine is repaired."""
        return all(item.outcome in {"repaired", "already"} for item in self.nodes)
