"""A shared environment repaired and undone by real Ansible, of which each machine runs a part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet import real
from tests.fleet.test_ansible import engine_line, good, outcomes
from tests.real.manifest import changed, manifest
from tests.witness.machines import flags, fleet_of

pytestmark = [
    pytest.mark.skipif(real.ansible() is None, reason="ansible-core is not installed: `make fleet` does that"),
    pytest.mark.skipif(flags() is None, reason="private namespaces are not allowed here"),
    pytest.mark.long,
]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[real.RealFleet]:
    found = fleet_of(tmp_path, ("n1", "n2", "n3", "n4"))
    yield found
    for node in found.nodes:
        found.killed(node)


def test_one_repair_for_all_machines(fleet: real.RealFleet) -> None:
    """n1 repairs, n2 of the same class and n4 with another GPU prove, n3 tells of programs; then all is undone."""
    before = manifest(fleet.case.prefix)
    collect = f"{real.collection()} ansible all -i {fleet.hosts} -m envmedic.fleet.facts -a '{fleet.facts_words()}'"
    good(fleet.run(collect))
    other = fleet.room / "facts" / "n4.json"
    facts = json.loads(other.read_text())
    facts["host"]["gpus"] = [{"index": 0, "name": "another GPU", "compute_capability": "12.0"}]
    other.write_text(json.dumps(facts))
    where = ("--on", f"ansible:{fleet.hosts}", "-p", str(fleet.case.prefix), "--log", str(real.LOG))
    how = ("--envmedic", fleet.on_node, "--no-gpu", "--online", "-o", str(fleet.place))
    document = fleet.envmedic("fleet", "plan", str(fleet.room / "facts"), *where, *how, "--json")
    classes = {item["name"]: item["nodes"] for item in json.loads(document.stdout)["classes"]}
    assert classes == {"A": ["n1", "n2", "n3"], "B": ["n4"]}
    # there is no such GPU here on which the plan for its class could be made; it is not needed
    (fleet.place / "plan.yml").write_text((fleet.place / "plan.yml").read_text().replace('["n1", "n4"]', '["n1"]'))
    good(fleet.run(json.loads(document.stdout)["command"]))

    link = ("--layout", "symlink")
    told = json.loads(good(fleet.envmedic("fleet", "rollout", str(fleet.place), "--shared", *link, "--json")))
    assert told["shared"] == {
        "holder": "n1", "file": "A.json", "witnesses": ["n2", "n4"], "machines": ["n3"], "layout": "symlink",
    }  # fmt: skip
    good(fleet.run(f"{told['command']} --check --diff"))
    assert not changed(before, manifest(fleet.case.prefix))
    good(fleet.run(told["command"]))
    record = json.loads((fleet.place / "results" / "n1.json").read_text())
    seen = {item["machine"]: (item["proved"], item["looked"]) for item in record["witnesses"]}
    assert seen == {"n2": (True, True), "n4": (True, True), "n3": (False, True)}
    assert outcomes(fleet) == {"n1": "repaired"}
    assert fleet.case.prefix.is_symlink()
    assert all(fleet.works(node) for node in fleet.nodes)
    again = json.loads(good(fleet.envmedic("fleet", "rollout", str(fleet.place), "--json")))
    assert (again["command"], again["done"]) == ("", 1)

    line = engine_line(fleet, "undo", str(fleet.place))
    sleeping = fleet.room / "before-n3"
    sleeping.write_text(f"{fleet.case.python} -c 'import time; time.sleep(900)' &\n")
    assert "time.sleep" in good(fleet.run(line), code=2)
    assert fleet.works("n1")
    sleeping.unlink()
    good(fleet.run(line))
    assert not changed(before, manifest(fleet.case.prefix.resolve()))
    left = json.loads(fleet.envmedic("fleet", "rollout", str(fleet.place), "--json").stdout)
    assert (left["command"], left["taken_back"]) == ("", ["n1"])
