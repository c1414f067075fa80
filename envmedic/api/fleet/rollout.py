"""Use cases ``fleet plan``, ``rollout`` and ``undo``: what an engine is to run on many machines, by what they answered.

Nothing is run here, and no connection is opened. Each call looks at the answers that are there, so that a rollout that
was cut off anywhere goes on with the machines that are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

import envmedic
from envmedic.analysis.fleet import ansible_files, machines, slurm_files
from envmedic.analysis.fleet import stages as staging
from envmedic.api.context.settings import Settings
from envmedic.api.fleet import collected, diagnosis, folder
from envmedic.api.repair import read_plan
from envmedic.errors import InputError
from envmedic.model.answers.fleet import FleetClass, FleetStatus, NodeStatus, SilentNode
from envmedic.model.answers.rollout import (
    ClassOfPlan,
    Engine,
    FleetPlan,
    LeftOut,
    NodeSettings,
    Rollout,
    RolloutWish,
    SharedEnvironment,
    Stage,
    StagesLeft,
)

_LOG = "error.log"
DONE = {"repaired", "already"}
"""Ends of machines that are done."""
OPEN = {"unknown"}
"""Ends of machines that may get the plan again: it repairs there, or says that it had done so."""


class PlanWish(msgspec.Struct, frozen=True, kw_only=True):
    """What plans are wanted for."""

    on: str
    """Engine and target, as ``ansible:hosts.ini``."""
    prefix: str
    """The environment on the machines."""
    playbook: str | None = None
    log: str | None = None
    settings: NodeSettings = NodeSettings()


def plan(settings: Settings, facts: Path, place: Path, wish: PlanWish, expected: Path | None = None) -> FleetPlan:
    """Write into `place` what makes a plan for each class of machines that needs one. Raises InputError."""
    engine, target = collected.engine_of(wish.on)
    if (wish.playbook is None) == (wish.log is None):
        raise InputError(
            "What is to be repaired is not told, or told twice", hint="Give either --log FILE or --playbook ID"
        )
    if folder.begun(place) is not None:
        raise InputError(
            f"A rollout was begun from {place}", hint="Go on with `envmedic fleet rollout`, or name another directory"
        )
    classes, left_out, silent = _wanted(settings, facts, wish, expected)
    folder.require_names(node for item in classes for node in item.nodes)
    fleet = FleetPlan(
        engine=cast("Engine", engine),
        target=target,
        prefix=wish.prefix,
        playbook=wish.playbook,
        log=_LOG if wish.log is not None else None,
        settings=wish.settings,
        classes=tuple(
            ClassOfPlan(
                name=item.name,
                environment=item.environment,
                nodes=item.nodes,
                file=f"{item.name}.json",
                maker=item.nodes[0],
            )
            for item in classes
        ),
        left_out=left_out,
        silent=silent,
    )
    return _written(place, fleet, wish)


def _written(place: Path, fleet: FleetPlan, wish: PlanWish) -> FleetPlan:
    files = {folder.FLEET: folder.document(fleet)}
    command = ""
    if fleet.classes and fleet.engine == "ansible":
        files["plan.yml"] = ansible_files.planning(fleet)
        command = ansible(fleet, place / "plan.yml")
    elif fleet.classes:
        files["plan.sh"] = slurm_files.planning(fleet, str(place.absolute()))
        files[slurm_files.HEALTH] = slurm_files.health(fleet)
        command = str(place / "plan.sh")
    if wish.log is not None:
        files[_LOG] = _text_of(wish.log)
    return msgspec.structs.replace(fleet, files=folder.write(place, files), command=command)


def _text_of(log: str) -> str:
    try:
        return Path(log).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(
            f"{log} cannot be read", cause=error.strerror, hint="Name the file of the error text"
        ) from error


def _wanted(
    settings: Settings, facts: Path, wish: PlanWish, expected: Path | None
) -> tuple[Sequence[FleetClass], tuple[LeftOut, ...], tuple[SilentNode, ...]]:
    """The classes to plan for; with an error text those that it is a fault of, by their facts."""
    if wish.log is None:
        survey = collected.survey(facts, expected)
        return survey.classes, (), survey.silent
    judged = diagnosis.diagnose(settings, facts, wish.log, expected)
    wanted = [item.machines for item in judged.classes if item.diagnosis.verdict in {"env", "unknown"}]
    left_out = [
        LeftOut(
            name=item.machines.name, nodes=item.machines.nodes, why=item.diagnosis.reason or str(item.diagnosis.verdict)
        )
        for item in judged.classes
        if item.machines not in wanted
    ]
    return wanted, tuple(left_out), judged.silent


def rollout(place: Path, wish: RolloutWish | None, settings: NodeSettings | None, *, retry: bool = False) -> Rollout:
    """Write into `place` what repairs the machines that are left, and return how far it is. Raises InputError.

    Without a wish or settings those of the call before are taken. `retry` gives machines on which it failed, or was
    taken back, another go.
    """
    fleet = folder.fleet_of(place)
    before = folder.begun(place)
    wish = wish or (before.wish if before is not None else RolloutWish())
    settings = settings or (before.settings if before is not None else fleet.settings)
    found_ends = ends(place, fleet)
    again = [node for node, end in found_ends.items() if end.outcome not in DONE | OPEN]
    if retry and again:
        folder.set_aside(place, again)
        found_ends = ends(place, fleet)
    done = {node for node, end in found_ends.items() if end.outcome in DONE}
    undone = [node for node, end in found_ends.items() if end.outcome == "undone"]
    failed = {node: told(end) for node, end in found_ends.items() if end.outcome not in DONE | OPEN | {"undone"}}
    every = staging.stages(fleet.classes, wish)
    left = staging.left(every, done.union(undone), failed)
    found = Rollout(
        kind="rollout",
        wish=wish,
        settings=settings,
        total=len(found_ends),
        done=len(done),
        taken_back=tuple(undone),
        failed=tuple(SilentNode(node=node, why=why) for node, why in failed.items()),
        left=left,
    )
    files: dict[str, str] = {folder.ROLLOUT: folder.document(found)}
    command = ""
    if left.stages and fleet.engine == "ansible":
        totals = {stage.name: len(stage.nodes) for stage in every}
        files["rollout.yml"] = ansible_files.rollout(fleet, settings, left.stages, totals)
        command = ansible(fleet, place / "rollout.yml")
    elif left.stages:
        files |= slurm_files.rollout(fleet, settings, left.stages, str(place.absolute()))
        command = str(place / "rollout.sh")
    return msgspec.structs.replace(found, files=folder.write(place, files), command=command)


def undo(place: Path, only: Sequence[str] = ()) -> Rollout:
    """Write into `place` what takes the repairs back that are in place, all or of some classes and machines.

    Raises InputError.
    """
    fleet = folder.fleet_of(place)
    before = folder.begun(place)
    settings = before.settings if before is not None else fleet.settings
    shared = before.shared if before is not None else None
    if shared is not None:
        fleet = only_holder(fleet, shared)
    wanted = _only(fleet, only)
    failures = {node: why for node, why in folder.undo_failures(place).items() if node in wanted}
    found_ends = ends(place, fleet)
    undone = [node for node in wanted if found_ends[node].outcome == "undone"]
    todo = tuple(node for node in wanted if found_ends[node].outcome in DONE)
    files: dict[str, str] = {}
    command = ""
    if todo and fleet.engine == "ansible":
        files["undo.yml"] = ansible_files.undoing(fleet, settings, todo, shared)
        command = ansible(fleet, place / "undo.yml")
    elif todo:
        files = slurm_files.undoing(fleet, settings, todo, str(place.absolute()), shared)
        command = str(place / "undo.sh")
    stage = Stage(name="undo", nodes=todo, allowed=len(todo))
    return Rollout(
        kind="undo",
        shared=shared,
        settings=settings,
        total=len(todo) + len(undone),
        done=len(undone),
        failed=tuple(SilentNode(node=node, why=why) for node, why in failures.items()),
        left=StagesLeft(stages=(stage,) if todo else ()),
        files=folder.write(place, files),
        command=command,
    )


def status(place: Path) -> FleetStatus:
    """Return how the rollout in `place` ended on each machine. Raises InputError."""
    fleet = folder.fleet_of(place)
    before = folder.begun(place)
    if before is not None and before.shared is not None:
        fleet = only_holder(fleet, before.shared)
    return folder.status(place, fleet, _plans(place, fleet, missing=True))


def only_holder(fleet: FleetPlan, shared: SharedEnvironment) -> FleetPlan:
    """Return the fleet with the one machine that answers for an environment which all share."""
    classes = tuple(
        msgspec.structs.replace(item, nodes=(shared.holder,)) for item in fleet.classes if shared.holder in item.nodes
    )
    return msgspec.structs.replace(fleet, classes=classes, silent=())


def exceeded(place: Path, name: str) -> str:
    """Return why a rollout goes no further than a stage, nothing where it does. Machines without an answer have failed.

    Raises InputError.
    """
    fleet = folder.fleet_of(place)
    before = folder.begun(place)
    stages = {item.name: item for item in staging.stages(fleet.classes, before.wish)} if before is not None else {}
    if name not in stages:
        raise InputError(f"The rollout has no stage {name}", hint="canary, or the number of a batch")
    failed = {node: told(end) for node, end in ends(place, fleet).items() if end.outcome not in DONE}
    return staging.left([stages[name]], (), failed).stopped


def ends(place: Path, fleet: FleetPlan) -> Mapping[str, NodeStatus]:
    """Return how it ended on the machines for which there is a plan, in the order of classes. Raises InputError."""
    known = {item.node: item for item in folder.status(place, fleet, _plans(place, fleet)).nodes}
    return {node: known[node] for item in fleet.classes for node in item.nodes}


def told(end: NodeStatus) -> str:
    """Return how it ended on a machine, in words."""
    return f"{end.outcome}: {end.reason}" if end.reason else end.outcome


def _only(fleet: FleetPlan, names: Sequence[str]) -> list[str]:
    """The machines meant by ``class:A`` and names; all without any. Raises InputError."""
    groups = {f"class:{item.name}": item.nodes for item in fleet.classes}
    groups |= {node: (node,) for item in fleet.classes for node in item.nodes}
    wrong = next((name for name in names if name not in groups), None)
    if wrong is not None:
        raise InputError(f"{wrong} is neither a class nor a machine of this fleet", hint="Say class:A, or a machine")
    chosen = names or [f"class:{item.name}" for item in fleet.classes]
    return list(dict.fromkeys(node for name in chosen for node in groups[name]))


def _plans(place: Path, fleet: FleetPlan, *, missing: bool = False) -> Mapping[str, str]:
    """The id of each class's plan. Raises InputError for one that is not there (unless `missing`), or is for another."""
    found: dict[str, str] = {}
    for item in fleet.classes:
        if missing and not (place / item.file).is_file():
            continue
        made = read_plan(place / item.file)
        if made.for_class != item.environment or made.prefix != fleet.prefix:
            raise InputError(
                f"The plan {place / item.file} is for other machines than class {item.name}",
                cause="; ".join(machines.differences(item.environment, made.for_class)) or f"It is for {made.prefix}",
                hint="Collect the facts again, and make the plans again",
            )
        found[item.name] = made.id
    return found


def ansible(fleet: FleetPlan, playbook: Path) -> str:
    """Return the command that runs a playbook."""
    return ansible_files.command(str(Path(envmedic.__file__).parent), fleet.target, str(playbook))
