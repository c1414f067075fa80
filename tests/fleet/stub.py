"""A machine of seeded behaviour in the place of envmedic: it repairs, fails, dies, hangs, lies or drifts.

In the model of the engine it is called, by real Ansible it is started as a program: `python stub.py SEED NODE ROOM apply
PLAN …`. Only the standard library is used, since it starts thousands of times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

KINDS = {
    "sound": 0, "fails": 3, "refuses": 2, "other-class": 1, "dies before": 2, "dies after": 2, "hangs": 2,
    "answers nothing": 1, "answers of another plan": 1, "lies": 1, "drifts": 2,
}  # fmt: skip
"""Kinds of behaviour with the weight of each among the unsound ones."""
PASSING = {"fails", "refuses", "dies before", "dies after", "hangs", "answers nothing", "answers of another plan"}
"""Kinds that are sound at the second attempt: the machine came back, or somebody looked after it."""
UNSOUND = 0.08
"""Part of the machines that is not sound, in most fleets."""
State = tuple[int, int, str]
ANSWERS: dict[str, tuple[int | None, str]] = {
    "fails": (4, "failed"), "refuses": (6, "refused"), "other-class": (8, "other-class"), "dies before": (None, "died"),
    "dies after": (None, "died"), "hangs": (None, "died"), "answers nothing": (0, ""),
}  # fmt: skip
"""Exit code and outcome of each kind that is not repaired, or does not say so."""


def kind_of(seed: int | str, node: str) -> str:
    """The behaviour of a machine in the fleet of a seed."""
    fleet = random.Random(f"fleet {seed}")
    part = fleet.choice([0.0, UNSOUND / 8, UNSOUND, UNSOUND, UNSOUND * 4])
    own = random.Random(f"{seed} {node}")
    if own.random() >= part:
        return "sound"
    return own.choices(list(KINDS), list(KINDS.values()))[0]


def step(kind: str, state: State, plan: str) -> tuple[State, int | None, str]:
    """One start of `apply` on a machine: its new state, the exit code, and what it prints; no code: it died.

    A state has the number of attempts and of repairs, and the content of the environment.
    """
    attempts, repairs, content = state
    if kind in PASSING and attempts:
        kind = "sound"
    attempts += 1
    if content != "broken":
        return (attempts, repairs, content), 0, _record("already", plan)
    code, out = ANSWERS.get(kind, (0, "repaired"))
    if kind in {"sound", "dies after", "drifts"}:
        repairs, content = repairs + 1, "drifted" if kind == "drifts" else "repaired"
    if out in {"", "died"}:
        return (attempts, repairs, content), code, ""
    if code:
        return (attempts, repairs, content), code, _error(out, code)
    return (attempts, repairs, content), code, _record(out, "0" * 64 if kind == "answers of another plan" else plan)


def _record(outcome: str, plan: str) -> str:
    return json.dumps({
        "schema": "envmedic.record/1", "transaction": "t1", "state": "done", "outcome": outcome,
        "plan": {"id": "2" * 64, "class_plan": plan},
    })  # fmt: skip


def _error(outcome: str, code: int) -> str:
    return json.dumps({
        "schema": "envmedic.error/1", "code": outcome, "exit_code": code, "summary": f"It is {outcome}", "cause": None,
        "hint": None, "environment": "unchanged", "outcome": outcome,
    })  # fmt: skip


def main(arguments: list[str]) -> int:
    """Be a machine."""
    seed, node, room, _, plan = arguments[:5]
    place = Path(room, node)
    state: State = (0, 0, "broken")
    if place.exists():
        attempts, repairs, content = json.loads(place.read_text())
        state = (attempts, repairs, content)
    kind = kind_of(seed, node)
    state, code, out = step(kind, state, json.loads(Path(plan).read_text())["id"])
    place.write_text(json.dumps(state))
    if code is None and kind == "hangs":
        time.sleep(600)
    if code is None:
        os.kill(os.getppid(), signal.SIGKILL)
        os._exit(1)
    sys.stdout.write(out)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
