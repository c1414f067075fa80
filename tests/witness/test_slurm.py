"""The same by real Slurm: one job for all machines, whose steps answer each other."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest

from tests.fleet import real
from tests.fleet.test_ansible import engine_line, good, outcomes
from tests.fleet.test_slurm import Cluster
from tests.fleet.test_slurm import pytestmark as slurm
from tests.real.manifest import changed, manifest
from tests.witness.machines import flags, fleet_of

NODES = ("n1", "n2", "n3")
pytestmark = [
    slurm,
    pytest.mark.skipif(flags() is None, reason="private namespaces are not allowed here"),
    pytest.mark.long,
]


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    fleet = fleet_of(tmp_path_factory.mktemp("slurm"), NODES)
    own = fleet.room / "own.sh"
    own.write_text(f'#!/bin/sh\nexec {fleet.node} "$SLURMD_NODENAME" {shlex.join(real.ENVMEDIC)} "$@"\n')
    own.chmod(0o755)
    found = Cluster(fleet)
    yield found
    found.end()


def test_one_job_repairs_for_all_machines(cluster: Cluster) -> None:
    fleet = cluster.fleet
    before = manifest(fleet.case.prefix)
    where = ("--on", f"slurm:n[1-{len(NODES)}]", "-p", str(fleet.case.prefix), "--envmedic", str(fleet.room / "own.sh"))
    (fleet.room / "facts").mkdir()
    good(cluster.run(engine_line(fleet, "survey", str(fleet.room / "facts"), *where)))
    how = ("--log", str(real.LOG), "--no-gpu", "--online", "-o", str(fleet.place))
    good(cluster.run(engine_line(fleet, "plan", str(fleet.room / "facts"), *where, *how)))
    good(cluster.run(engine_line(fleet, "rollout", str(fleet.place), "--shared", "--layout", "symlink")))
    cluster.wait()
    log = fleet.place / "logs"
    told = "".join(path.read_text() for path in log.glob("*.txt"))
    record = json.loads((fleet.place / "results" / "n1.json").read_text() or "{}")
    assert outcomes(fleet) == {"n1": "repaired"}, told
    seen = {item["machine"]: (item["proved"], item["looked"]) for item in record["witnesses"]}
    assert seen == {"n2": (True, True), "n3": (False, True)}
    assert fleet.case.prefix.is_symlink()
    assert "the repaired environment is in place" in (log / "witness-n2.txt").read_text()
    good(cluster.run(engine_line(fleet, "undo", str(fleet.place))))
    cluster.wait()
    assert outcomes(fleet) == {"n1": "undone"}
    assert not changed(before, manifest(fleet.case.prefix.resolve()))
