"""A small real fleet by real Ansible: surveyed, planned, repaired with a machine killed in the middle, gone on, undone."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from envmedic.model.answers.rollout import NodeSettings
from envmedic.model.plan import Plan
from tests.envs.nms_cuda.case import BROKEN, REPAIRED
from tests.fleet import real, stub
from tests.fleet.paper import Machines, run_playbook, told, write_fleet
from tests.real.manifest import changed, manifest

FLAGS = real.unshare_flags()
pytestmark = [
    pytest.mark.skipif(real.ansible() is None, reason="ansible-core is not installed: `make fleet` does that"),
    pytest.mark.skipif(FLAGS is None, reason="no private mount namespaces here"),
]
DIED = "n2"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.RealFleet]:
    assert FLAGS is not None
    found = real.build(tmp_path_factory.mktemp("fleet"), 4, FLAGS)
    # one that is of another class
    (found.room / "nodes" / "n4" / "env" / "stray").write_text("mine")
    yield found
    for node in found.nodes:
        found.killed(node)


def good(done: subprocess.CompletedProcess[str], code: int = 0) -> str:
    """What a command printed that ended as expected."""
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def outcomes(fleet: real.RealFleet) -> dict[str, str]:
    """What `fleet status` says of each machine."""
    found = json.loads(fleet.envmedic("fleet", "status", str(fleet.place), "--json").stdout)
    return {item["node"]: item["outcome"] for item in found["nodes"]}


def engine_line(fleet: real.RealFleet, verb: str, *words: str) -> str:
    """The command that envmedic prints for the engine."""
    found = json.loads(good(fleet.envmedic("fleet", verb, *words, "--json")))
    return str(found["command"])


def test_a_fleet_is_repaired_and_goes_on_after_a_death_and_is_undone(fleet: real.RealFleet) -> None:
    before = {node: manifest(fleet.room / "nodes" / node / "env") for node in fleet.nodes}
    good(
        fleet.run(
            f"{real.collection()} ansible all -i {fleet.hosts} -m envmedic.fleet.facts -a '{fleet.facts_words()}'"
        )
    )
    where = ("--on", f"ansible:{fleet.hosts}", "-p", str(fleet.case.prefix), "--log", str(real.LOG))
    how = ("--envmedic", fleet.on_node, "--no-gpu", "--online", "-o", str(fleet.place))
    good(fleet.run(engine_line(fleet, "plan", str(fleet.room / "facts"), *where, *how)))

    line = engine_line(fleet, "rollout", str(fleet.place), "--batches", "1,100%")
    told_only = good(fleet.run(f"{line} --check --diff"))
    assert f"-torchvision {BROKEN}\n+torchvision {REPAIRED}" in told_only
    assert not (fleet.place / "results").exists()
    assert all(not changed(before[node], manifest(fleet.room / "nodes" / node / "env")) for node in fleet.nodes)

    killer = threading.Thread(target=fleet.kill_in_repair, args=(DIED,))
    killer.start()
    good(fleet.run(line), code=2)
    killer.join()
    found = outcomes(fleet)
    assert (found["n1"], found["n4"], found[DIED]) == ("repaired", "repaired", "unknown"), found
    assert found["n3"] == "unknown", "the second batch was begun"
    assert not changed(before["n3"], manifest(fleet.room / "nodes" / "n3" / "env"))

    done = good(fleet.run(engine_line(fleet, "rollout", str(fleet.place))))
    assert f"changed: [{DIED}]" in done
    assert "[n1]" not in done, "a machine that was done was touched"
    assert set(outcomes(fleet).values()) == {"repaired"}
    assert all(fleet.works(node) for node in fleet.nodes)
    assert json.loads(good(fleet.envmedic("fleet", "rollout", str(fleet.place), "--json")))["command"] == ""

    line = engine_line(fleet, "undo", str(fleet.place))
    good(fleet.run(line))
    assert "changed=0" in good(fleet.run(line)), "an undo of what is undone does something"
    assert set(outcomes(fleet).values()) == {"undone"}
    assert all(not changed(before[node], manifest(fleet.room / "nodes" / node / "env")) for node in fleet.nodes)


@pytest.mark.parametrize("seed", [*((5, 6) if not real.ALL else range(20))])
def test_the_model_of_the_engine_is_as_the_engine(seed: int, class_plan: Plan, tmp_path: Path) -> None:
    """Both touch the same machines, and keep the same answers, until nothing is left or somebody has to look."""
    assert FLAGS is not None
    nodes = 40 if real.ALL else 12
    machines = Machines(seed)
    folders = {name: tmp_path / name for name in ("model", "engine")}
    state = tmp_path / "state"
    state.mkdir()
    words = (real.PYTHON, "-S", stub.__file__, str(seed), "{{ inventory_hostname }}", str(state))
    settings = NodeSettings(command=words, limit_s=3)
    hosts = tmp_path / "hosts.ini"
    hosts.write_text("".join(f"{real.host(f'n{number}')}\n" for number in range(1, nodes + 1)))
    for place in folders.values():
        write_fleet(place, class_plan, nodes, settings=settings, target=str(hosts))
    fleet = real.RealFleet(tmp_path, None, ())
    options = ["--batches", "20%,100%", "--max-fail", "10%"]
    for _ in range(6):
        lines = [
            json.loads(fleet.envmedic("fleet", "rollout", str(place), *options, "--json").stdout)
            for place in folders.values()
        ]
        assert lines[0]["left"] == lines[1]["left"]
        if not lines[1]["command"]:
            break
        options = []
        run_playbook(folders["model"], machines.apply, [])
        fleet.run(lines[1]["command"])
        engine = {path.name: tuple(json.loads(path.read_text())) for path in state.iterdir()}
        assert engine == machines.states
        assert told(folders["model"]) == told(folders["engine"])
