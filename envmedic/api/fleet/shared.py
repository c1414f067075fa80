"""Use case ``fleet rollout --shared``: one repair of an environment that all machines share, and its undo.

One machine of a class carries the plan of that class out. Witnesses of every class prove the copy before it takes the
environment's place, and all machines are asked for programs that use it. Nothing is run here.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from envmedic.analysis.fleet import ansible_files, slurm_files
from envmedic.api.fleet import folder, rollout
from envmedic.errors import InputError
from envmedic.model.answers.fleet import SilentNode
from envmedic.model.answers.rollout import FleetPlan, NodeSettings, Rollout, SharedEnvironment, Stage, StagesLeft
from envmedic.model.registries.modes import Layout


def rolled_out(
    place: Path,
    plan_of: str | None,
    witnesses: int | None,
    settings: NodeSettings | None,
    *,
    layout: Layout | None = None,
    retry: bool = False,
) -> Rollout:
    """Write into `place` what repairs the one environment, unless that is done. Raises InputError.

    `plan_of` is the class whose plan is carried out, by default the first; `witnesses` is their number in each class.
    `layout` is what the environment becomes. What is not told is as in the call before.
    """
    fleet = folder.fleet_of(place)
    before = folder.begun(place)
    settings = settings or (before.settings if before is not None else fleet.settings)
    shared = before.shared if before is not None and before.shared is not None and not (plan_of or witnesses) else None
    shared = shared or _shared(fleet, plan_of or fleet.classes[0].name, 1 if witnesses is None else witnesses)
    shared = msgspec.structs.replace(shared, layout=layout or shared.layout)
    of_plan = rollout.only_holder(fleet, shared)
    end = rollout.ends(place, of_plan)[shared.holder]
    if retry and end.outcome not in rollout.DONE:
        folder.set_aside(place, (shared.holder,))
        end = rollout.ends(place, of_plan)[shared.holder]
    undone = end.outcome == "undone"
    failed = end.outcome not in rollout.DONE | rollout.OPEN and not undone
    found = Rollout(
        kind="rollout",
        shared=shared,
        settings=settings,
        total=1,
        done=int(end.outcome in rollout.DONE),
        taken_back=(shared.holder,) if undone else (),
        failed=(SilentNode(node=shared.holder, why=rollout.told(end)),) if failed else (),
        left=StagesLeft(
            stages=(Stage(name="shared", nodes=(shared.holder,), allowed=0),) if end.outcome in rollout.OPEN else (),
            stopped=rollout.told(end) if failed else "",
        ),
    )
    files = {folder.ROLLOUT: folder.document(found)}
    command = ""
    if found.left.stages and fleet.engine == "ansible":
        files["rollout.yml"] = ansible_files.shared(fleet, settings, shared)
        command = rollout.ansible(fleet, place / "rollout.yml")
    elif found.left.stages:
        files |= slurm_files.shared(fleet, settings, shared, str(place.absolute()))
        command = str(place / "rollout.sh")
    return msgspec.structs.replace(found, files=folder.write(place, files), command=command)


def _shared(fleet: FleetPlan, plan_of: str, witnesses: int) -> SharedEnvironment:
    """Which machine does what. Raises InputError where they do not share an environment."""
    chosen = next((item for item in fleet.classes if item.name == plan_of), None)
    if chosen is None:
        raise InputError(
            f"There is no class {plan_of} to be repaired", hint="`envmedic fleet survey` shows the classes"
        )
    other = next((item for item in fleet.classes if item.environment.content != chosen.environment.content), None)
    if other is not None:
        raise InputError(
            f"Class {other.name} has another environment than class {chosen.name}",
            cause="Their contents differ, so these machines do not share one",
            hint="Leave out --shared, or collect the facts again",
        )
    holder = chosen.maker
    others = {item.name: [node for node in item.nodes if node != holder] for item in fleet.classes}
    proving = [node for nodes in others.values() for node in nodes[:witnesses]]
    every = [node for nodes in (*others.values(), *(item.nodes for item in fleet.left_out)) for node in nodes]
    return SharedEnvironment(
        holder=holder,
        file=chosen.file,
        witnesses=tuple(proving),
        machines=tuple(node for node in every if node not in proving),
    )
