"""The order in which machines are repaired, when a rollout stops, and what is left of one that was cut off. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from envmedic.errors import InputError
from envmedic.model.answers.rollout import ClassOfPlan, RolloutWish, Stage, StagesLeft
from envmedic.wording import counted

CANARY = "canary"
_SIZE = re.compile(r"\d{1,6}|\d{1,3}(?:\.\d{1,3})?%")
_WHOLE = 100.0


def stages(classes: Sequence[ClassOfPlan], wish: RolloutWish) -> tuple[Stage, ...]:
    """Return all stages: canaries of every class first, then batches with a like part of each class.

    They depend on the machines and the wish alone, so that a rollout that goes on has the same ones. Raises InputError.
    """
    first = [node for item in classes for node in item.nodes[: wish.canary]]
    found = [Stage(name=CANARY, nodes=tuple(first), allowed=0)] if first else []
    rest = _mixed([item.nodes[wish.canary :] for item in classes])
    number = 0
    start = 0
    while start < len(rest):
        size = max(1, amount(wish.batches[min(number, len(wish.batches) - 1)], len(rest), name="batch"))
        nodes = tuple(rest[start : start + size])
        number += 1
        start += size
        allowed = amount(wish.max_fail, len(nodes), name="limit")
        found.append(Stage(name=str(number), nodes=nodes, allowed=min(allowed, len(nodes))))
    return tuple(found)


def amount(text: str, whole: int, *, name: str) -> int:
    """Return a number, or (``10%``) that part of `whole`, rounded down. Raises InputError for what is neither."""
    if not _SIZE.fullmatch(text):
        raise InputError(f"{text!r} is no {name}", hint="Say a number such as 8, or a part such as 10%")
    if not text.endswith("%"):
        return int(text)
    return int(min(float(text[:-1]), _WHOLE) * whole / _WHOLE)


def _mixed(groups: Iterable[Sequence[str]]) -> list[str]:
    """All names, so that each beginning has a like part of every group."""
    placed = [
        ((place + 0.5) / len(group), number, name)
        for number, group in enumerate(groups)
        for place, name in enumerate(group)
    ]
    return [name for _, _, name in sorted(placed)]


def left(all_stages: Sequence[Stage], done: Collection[str], failed: Mapping[str, str]) -> StagesLeft:
    """Return what is to do where some machines are done and others have failed, by name with the reason."""
    found: list[Stage] = []
    for stage in all_stages:
        wrong = [node for node in stage.nodes if node in failed]
        if len(wrong) > stage.allowed:
            # in a stage before it, machines may be without a result: they are not touched any more either
            return StagesLeft(stages=(), stopped=_stopped(stage, wrong, failed))
        nodes = tuple(node for node in stage.nodes if node not in done and node not in failed)
        if nodes:
            found.append(Stage(name=stage.name, nodes=nodes, allowed=min(stage.allowed - len(wrong), len(nodes))))
    return StagesLeft(stages=tuple(found))


def _stopped(stage: Stage, wrong: Sequence[str], failed: Mapping[str, str]) -> str:
    if stage.name == CANARY:
        return f"the canary {wrong[0]} failed: {failed[wrong[0]]}"
    return f"{counted(len(wrong), 'machine')} of batch {stage.name} failed, where {stage.allowed} may: {wrong[0]}: {failed[wrong[0]]}"
