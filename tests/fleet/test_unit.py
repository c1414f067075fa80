"""The one file that `make fleet-unit` makes, on machines of a small real fleet: with their Python alone, and no index."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.fleet import real
from tests.fleet.test_ansible import good

UNIT = real.ROOT / "dist" / "envmedic-node.pex"
FLAGS = real.unshare_flags()
pytestmark = [
    pytest.mark.skipif(not UNIT.exists(), reason="the file for nodes is not made: `make fleet-unit` does that"),
    pytest.mark.skipif(FLAGS is None, reason="no private mount namespaces here"),
]


def test_a_node_is_repaired_and_undone_by_the_one_file_and_wheels_handed_over(tmp_path: Path) -> None:
    assert FLAGS is not None
    fleet = real.build(tmp_path / "room", 2, FLAGS)
    prefix, plan = str(fleet.case.prefix), tmp_path / "plan.json"
    wheels = fleet.room / "wheels"
    # neither uv nor envmedic is on the PATH
    unit = ("env", "PATH=/usr/bin:/bin", real.PYTHON, str(UNIT))
    how = ("-p", prefix, "--for-class", "--log", str(real.LOG), "--no-gpu", "-o", str(plan))
    good(fleet.as_node("n1", *unit, "plan", *how))
    (fleet.room / "site" / "wheels").rename(wheels)
    for node in fleet.nodes:
        for part in ("index", "wheels"):
            shutil.rmtree(fleet.room / "nodes" / node / part)
    words = ("apply", str(plan), "--yes", "--json", "--no-gpu", "--offline", "--find-links", str(wheels))
    for node in fleet.nodes:
        assert json.loads(good(fleet.as_node(node, *unit, *words)))["outcome"] == "repaired"
        assert fleet.works(node)
    again = json.loads(good(fleet.as_node("n2", *unit, *words)))
    assert again["outcome"] == "already"
    good(fleet.as_node("n2", *unit, "undo", "--plan", str(plan), "--yes"))
    assert not fleet.works("n2")
