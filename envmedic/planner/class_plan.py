"""Plans for a class of environments: made once, and bound to one environment where they are carried out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from envmedic.model.answers.content import EnvironmentClass
from envmedic.model.conda import CondaChange
from envmedic.model.facts import Environment, Host
from envmedic.model.plan import Advise, Artifact, Install, Pin, Plan, Purge, SetEnv, Step, UnsetEnv
from envmedic.planner.identity import named

_ANYWHERE = (Purge, CondaChange, Install, SetEnv, UnsetEnv, Pin, Advise)
"""Steps that do the same wherever the content is the same. The others depend on paths, modes or a compiler."""


def bound_to_one(plan: Plan) -> Step | None:
    """Return the first step that is right for the environment of the plan alone; None where there is none."""
    return next((step for step in plan.steps if not isinstance(step, _ANYWHERE)), None)


def for_class(plan: Plan, wanted: EnvironmentClass) -> Plan:
    """Return `plan` for every environment of the class, without what holds for one of them alone."""
    return named(
        msgspec.structs.replace(
            plan, for_class=wanted, environment_digest="", project_edit=None, next_sync=None, obstacles=()
        )
    )


def bound(plan: Plan, environment: Environment, host: Host, place: Callable[[Artifact], Artifact]) -> Plan:
    """Return the plan of a class for one environment of it; `place` says where each wheel is on this machine."""
    moved = placed(plan, place)
    return named(
        msgspec.structs.replace(
            moved,
            prefix=environment.prefix,
            environment_digest=environment.digest,
            host=host,
            class_plan=plan.id,
        )
    )


def placed(plan: Plan, place: Callable[[Artifact], Artifact]) -> Plan:
    """Return `plan` with each wheel where `place` says; its id is that of before."""
    moved = msgspec.structs.replace(plan, steps=tuple(_placed(step, place) for step in plan.steps))
    return msgspec.structs.replace(moved, commands=_commands(plan, moved))


def _placed(step: Step, place: Callable[[Artifact], Artifact]) -> Step:
    return Install(artifacts=tuple(map(place, step.artifacts))) if isinstance(step, Install) else step


def _commands(before: Plan, after: Plan) -> tuple[tuple[str, ...], ...]:
    """The commands as they are shown, with the directories of wheels on this machine."""
    folders = {
        _folder(old): _folder(new)
        for one, two in zip(before.steps, after.steps, strict=True)
        if isinstance(one, Install) and isinstance(two, Install)
        for old, new in zip(one.artifacts, two.artifacts, strict=True)
    }
    return tuple(tuple(_renamed(words, folders)) for words in before.commands)


def _folder(item: Artifact) -> str:
    return "--find-links=" + item.local_path.rpartition("/")[0]


def _renamed(words: Sequence[str], folders: dict[str, str]) -> list[str]:
    return [folders.get(word, word) for word in words]
