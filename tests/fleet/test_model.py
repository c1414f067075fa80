"""Whole rollouts on a model of the engine: machines die, hang, lie and drift, and the controller dies in the middle."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from envmedic.analysis.fleet import machines as compare
from envmedic.api.fleet import rollout
from envmedic.model.answers.content import Content
from envmedic.model.answers.rollout import Rollout, RolloutWish, Stage
from envmedic.model.plan import Plan
from tests.fleet import real, stub
from tests.fleet.paper import Cut, Machines, run_playbook, told, wish_of, write_fleet

SEEDS, NODES = (200, 1000) if real.ALL else (12, 60)
ROUNDS = 400


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_rollout_stops_goes_on_and_tells_the_truth(seed: int, class_plan: Plan, tmp_path: Path) -> None:
    write_fleet(tmp_path, class_plan, NODES)
    machines = Machines(seed)
    chance = random.Random(f"cuts {seed}")
    wish: RolloutWish | None = wish_of(seed)
    retry, stopped = False, ""
    for _ in range(ROUNDS):
        found = rollout.rollout(tmp_path, wish, None, retry=retry)
        wish, retry = None, bool(found.left.stopped)
        if stopped and found.left.stopped == stopped:
            break  # nobody can mend this one: the fleet is surveyed anew
        stopped = found.left.stopped or stopped
        if not (found.left.stages or retry):
            break
        if found.left.stages:
            _run(tmp_path, machines, found.left.stages, chance.choice([None, None, chance.randrange(NODES)]))
            _hold_truth(tmp_path, machines, seed)
    else:
        pytest.fail("the rollout does not end")
    _hold_end(tmp_path, machines, seed, found)


def _run(place: Path, machines: Machines, left: tuple[Stage, ...], cut_after: int | None) -> None:
    """Start the engine, which goes by batches, no further than it may, and touches no machine that is done."""
    before = {node: state[0] for node, state in machines.states.items()}
    batches: list[dict[str, bool]] = []
    with contextlib.suppress(Cut):
        run_playbook(place, machines.apply, batches, cut_after=cut_after)
    touched = [node for batch in batches for node in batch]
    assert {node for node, state in machines.states.items() if state[0] != before.get(node, 0)} == set(touched)
    assert len(set(touched)) == len(touched)
    for stage, batch in zip(left, batches, strict=False):
        assert batch.keys() <= set(stage.nodes)
    for stage, batch in zip(left, batches[:-1], strict=False):
        assert batch.keys() == set(stage.nodes), "the next batch has begun"
        assert len(batch) - sum(batch.values()) <= stage.allowed, "the next batch has begun"


def _hold_truth(place: Path, machines: Machines, seed: int) -> None:
    """What is told of each machine is so; of one that gave no answer, nothing is."""
    for node, outcome in told(place).items():
        _, repairs, content = machines.state(node)
        assert repairs <= 1, node
        if outcome in {"repaired", "already"}:
            assert content != "broken" or stub.kind_of(seed, node) == "lies", (node, outcome)
        elif outcome != "unknown":
            assert (repairs, content) == (0, "broken"), (node, outcome)


def _hold_end(place: Path, machines: Machines, seed: int, found: Rollout) -> None:
    """At the end each machine is repaired exactly once, except where it was told that it is not, or it lied."""
    outcomes = told(place)
    assert len(outcomes) == NODES
    wrong = {node for node, outcome in outcomes.items() if outcome not in {"repaired", "already"}}
    if not found.left.stopped:
        assert wrong == {item.node for item in found.failed}
    assert found.done == NODES - len(wrong)
    liars = {node for node in outcomes if stub.kind_of(seed, node) == "lies"}
    assert all(machines.state(node)[1] == 1 for node in outcomes.keys() - wrong - liars)
    _hold_drift(machines, outcomes.keys() - wrong, liars)


def _hold_drift(machines: Machines, done: set[str], liars: set[str]) -> None:
    """Who lied or has changed since is found by comparing contents, as `fleet drift` does."""
    contents = {node: machines.state(node)[2] for node in done}
    found = compare.drift(
        "the canary", _content("repaired"), {node: _content(text) for node, text in contents.items()}, ()
    )
    drifters = {node for node, text in contents.items() if text == "drifted"}
    assert {item.node for item in found.drifted} == drifters | (liars & done)


def _content(text: str) -> Content:
    return Content(digest=text, variables={"content": text})
