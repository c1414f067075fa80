"""A fleet on paper: plans for two classes of machines that exist nowhere, and a model of how Ansible runs a playbook."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML

from envmedic.api.fleet import folder, rollout
from envmedic.model.answers.rollout import ClassOfPlan, FleetPlan, NodeSettings, RolloutWish
from envmedic.model.plan import Plan
from envmedic.planner.identity import named
from tests.fleet import stub

State = tuple[int, int, str]


def write_fleet(
    place: Path, plan: Plan, nodes: int, *, settings: NodeSettings | None = None, target: str = "hosts.ini"
) -> None:
    """Write the plans of two classes, a third of the machines in the second, into the directory of a fleet."""
    environment = plan.for_class
    assert environment is not None
    names = [f"n{number}" for number in range(1, nodes + 1)]
    groups = {"A": [name for number, name in enumerate(names) if number % 3], "B": names[::3]}
    classes = []
    files = {}
    for name, group in groups.items():
        own = msgspec.structs.replace(environment, driver="580" if name == "A" else "550")
        files[f"{name}.json"] = folder.document(named(msgspec.structs.replace(plan, for_class=own)))
        classes.append(ClassOfPlan(name=name, environment=own, nodes=tuple(group), file=f"{name}.json", maker=group[0]))
    fleet = FleetPlan(
        engine="ansible",
        target=target,
        prefix=plan.prefix,
        settings=settings or NodeSettings(),
        classes=tuple(classes),
    )
    folder.write(place, {**files, folder.FLEET: folder.document(fleet)})


class Cut(Exception):
    """The controller died."""


@dataclass
class Machines:
    """The machines of a seed, and what became of them."""

    seed: int
    states: dict[str, State] = field(default_factory=dict)

    def state(self, node: str) -> State:
        """Attempts, repairs, content."""
        return self.states.get(node, (0, 0, "broken"))

    def apply(self, node: str, plan: Path, results: Path) -> bool:
        """What the module does on a machine, and what the controller keeps of it; whether it did not fail."""
        wanted = _ids(plan)
        self.states[node], code, out = stub.step(stub.kind_of(self.seed, node), self.state(node), wanted)
        document: dict[str, Any] | None = json.loads(out) if out else None
        good = code == 0 and document is not None and document["plan"]["class_plan"] == wanted
        trusted = document is not None and (good or bool(code))
        kept = document if trusted else {"msg": "no answer"}
        results.mkdir(exist_ok=True)
        (results / f"{node}.json").write_text(json.dumps(kept))
        return good


_KNOWN: dict[Path, str] = {}


def _ids(plan: Path) -> str:
    if plan not in _KNOWN:
        _KNOWN[plan] = json.loads(plan.read_text())["id"]
    return _KNOWN[plan]


def run_playbook(
    place: Path,
    apply: Callable[[str, Path, Path], bool],
    touched: list[dict[str, bool]],
    *,
    cut_after: int | None = None,
) -> None:
    """Run ``rollout.yml`` as Ansible does; `touched` gets the batches, with whether each machine did not fail.

    https://docs.ansible.com/ansible/latest/playbook_guide/playbooks_error_handling.html and the linear strategy. Raises
    Cut, after so many machines.
    """
    count = 0
    for play in YAML(typ="safe").load((place / "rollout.yml").read_text()):
        (task,) = play["tasks"]
        name = task["envmedic.fleet.apply"]["plan"].removeprefix("{{ playbook_dir }}/")
        for batch in _batches(play["hosts"], play.get("serial")):
            found: dict[str, bool] = {}
            touched.append(found)
            for node in random.Random(f"{count}").sample(batch, len(batch)):
                if count == cut_after:
                    raise Cut
                count += 1
                file = play["vars"]["envmedic_files"][node] if "inventory_hostname" in name else name
                found[node] = apply(node, place / file, place / "results")
            failed = len(batch) - sum(found.values())
            over = failed / len(batch) > play["max_fail_percentage"] / 100
            if over or failed == len(batch) or (failed and play.get("any_errors_fatal")):
                return


def _batches(hosts: list[str], serial: list[int] | None) -> Iterator[list[str]]:
    start = number = 0
    while start < len(hosts):
        size = len(hosts) if serial is None else serial[min(number, len(serial) - 1)]
        yield hosts[start : start + size]
        start += size
        number += 1


def told(place: Path) -> Mapping[str, str]:
    """How ``fleet status`` says it ended, by machine."""
    return {item.node: item.outcome for item in rollout.status(place).nodes}


def wish_of(seed: int) -> RolloutWish:
    """Some way to roll out."""
    own = random.Random(f"wish {seed}")
    return RolloutWish(
        canary=own.choice([1, 1, 2, 3]),
        batches=own.choice([("10%", "100%"), ("1%", "10%", "50%"), ("7", "20%"), ("25%",), ("3%", "50")]),
        max_fail=own.choice(["0", "0", "1", "2%", "5%", "30%"]),
    )
