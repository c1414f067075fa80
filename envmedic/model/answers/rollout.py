"""A repair of many machines: a plan for each class, in which order machines get it, and what the engine runs for that."""

from __future__ import annotations

from typing import Final, Literal

from envmedic.model.answers.content import EnvironmentClass
from envmedic.model.answers.fleet import SilentNode
from envmedic.model.base import Model
from envmedic.model.registries.modes import Layout

FLEET_PLAN_SCHEMA: Final = "envmedic.fleet-plan/1"
ROLLOUT_SCHEMA: Final = "envmedic.fleet-rollout/1"
Engine = Literal["ansible", "slurm"]


class NodeSettings(Model, frozen=True, kw_only=True):
    """How envmedic is started on each machine."""

    command: tuple[str, ...] = ("envmedic",)
    """The words that start it there."""
    find_links: tuple[str, ...] = ()
    """Directories there that hold wheels."""
    offline: bool = True
    """Whether it asks no network there."""
    no_gpu: bool = False
    """Whether no proof on a GPU is asked for."""
    limit_s: int = 3600
    """Seconds after which a repair there is stopped, which leaves the environment as it was."""
    drain: bool = False
    """Whether Slurm gets no further jobs for a machine whose repair failed, and again some for one that was repaired."""


class ClassOfPlan(Model, frozen=True, kw_only=True):
    """A class of machines, and where the plan for it is."""

    name: str
    """Its letter."""
    environment: EnvironmentClass
    """What its machines have in common."""
    nodes: tuple[str, ...]
    """Their names, sorted."""
    file: str
    """The file of its plan, in the directory of the fleet."""
    maker: str
    """The machine on which the plan is made."""


class LeftOut(Model, frozen=True, kw_only=True):
    """A class of machines for which no plan is made."""

    name: str
    """Its letter."""
    nodes: tuple[str, ...]
    """Their names."""
    why: str
    """Why not."""


class FleetPlan(Model, frozen=True, kw_only=True):
    """The document of ``envmedic fleet plan --json``, kept as ``fleet.json``."""

    schema: Literal["envmedic.fleet-plan/1"] = FLEET_PLAN_SCHEMA
    engine: Engine
    """What runs commands on the machines."""
    target: str
    """Its inventory or nodes, as it was named."""
    prefix: str
    """The environment on every machine."""
    playbook: str | None = None
    """The playbook that the plans follow; null where an error text tells it."""
    log: str | None = None
    """The file of the error text, in the directory of the fleet."""
    settings: NodeSettings = NodeSettings()
    """How envmedic is started there."""
    classes: tuple[ClassOfPlan, ...]
    """Classes that are to be repaired."""
    left_out: tuple[LeftOut, ...] = ()
    """The others."""
    silent: tuple[SilentNode, ...] = ()
    """Machines without a usable document: no plan is for them."""
    made: tuple[str, ...] = ()
    """Names of the classes whose plans are there already."""
    files: tuple[str, ...] = ()
    """What was written for the engine."""
    command: str = ""
    """What the engine is started with, to make the plans."""


class RolloutWish(Model, frozen=True, kw_only=True):
    """In which steps a rollout goes."""

    canary: int = 1
    """Machines of each class that come first; where one of them fails, nothing further is touched."""
    batches: tuple[str, ...] = ("10%", "100%")
    """Sizes of the batches after that, as a number or as a part of what comes after the canaries; the last one is
    repeated."""
    max_fail: str = "0"
    """Machines of a batch that may fail, as a number or as a part of the batch; where more do, the next batch is not
    touched."""


class Stage(Model, frozen=True, kw_only=True):
    """Machines that are repaired at the same time."""

    name: str
    """``canary``, or the number of the batch."""
    nodes: tuple[str, ...]
    """All of them, in order."""
    allowed: int
    """How many of them may fail."""


class SharedEnvironment(Model, frozen=True, kw_only=True):
    """The machines of a repair of one environment that they share."""

    holder: str
    """The machine that carries it out."""
    file: str
    """The file of the plan, in the directory of the fleet."""
    witnesses: tuple[str, ...]
    """Those that prove the copy before it takes the environment's place."""
    machines: tuple[str, ...]
    """The others: they are asked which programs use it."""
    layout: Layout | None = None
    """What the environment becomes; null leaves it what it is."""


class StagesLeft(Model, frozen=True, kw_only=True):
    """What a rollout has still to do, by the results that are there."""

    stages: tuple[Stage, ...]
    """Every stage with machines to do, with these alone, and how many of them may fail still."""
    stopped: str = ""
    """Why nothing further is touched: the canary that failed, or the batch with too many failures."""


class Rollout(Model, frozen=True, kw_only=True):
    """The document of ``envmedic fleet rollout --json`` and ``envmedic fleet undo --json``."""

    schema: Literal["envmedic.fleet-rollout/1"] = ROLLOUT_SCHEMA
    kind: Literal["rollout", "undo"]
    """What is done on the machines."""
    wish: RolloutWish = RolloutWish()
    """The steps that were asked for; a later call without options takes them again."""
    settings: NodeSettings = NodeSettings()
    """How envmedic is started on the machines; likewise."""
    shared: SharedEnvironment | None = None
    """Which machine does what, where all share one environment (``--shared``)."""
    total: int
    """Machines that it is about."""
    done: int
    """Machines that are done."""
    taken_back: tuple[str, ...] = ()
    """Machines on which a rollout was undone: it leaves them alone, except with ``--retry``."""
    failed: tuple[SilentNode, ...] = ()
    """Machines on which it failed, each with its reason; ``--retry`` gives them another go."""
    left: StagesLeft
    """What is to do."""
    files: tuple[str, ...] = ()
    """What was written for the engine."""
    command: str = ""
    """What the engine is started with; empty where nothing is to do."""
