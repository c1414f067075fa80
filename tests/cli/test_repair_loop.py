"""The repair loop: what fails in the clone after the first repair is diagnosed in turn, and repaired there too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Shell, state_of, torchvision
from tests.envs.nms_cuda.case import REPAIRED, Case

FIRST_FAULT = """\
id: detector-pin
fault: companion-version
title: The detector wants its companion pinned
explain: A playbook of the user's own, for a fault that hides another one.
fix_kind: pin-package
signatures:
  - id: detector-gives-up
    pattern: "DetectorError: gives up"
    sample: "DetectorError: gives up"
    confidence: 1.0
when: {fact: env.python-starts, operator: is, value: true}
steps:
  - step: pin
    constraints: ["detector<2"]
checks: [torchvision-nms]
"""


@pytest.fixture
def log(user: Shell, room: Path) -> Path:
    """The error text of the first fault, for which the user has a playbook."""
    playbooks = user.home / ".config/envmedic/playbooks"
    playbooks.mkdir(parents=True)
    (playbooks / "detector-pin.yaml").write_text(FIRST_FAULT)
    path = room / "error.log"
    path.write_text("DetectorError: gives up\n")
    return path


def test_a_second_fault_is_found_and_repaired_in_the_same_clone(user: Shell, case: Case, log: Path) -> None:
    target = ("-p", str(case.prefix))
    done = user.envmedic("apply", "--json", "--yes", "--no-gpu", "--log", str(log), *target)
    assert done.code == 0, done.told()
    record = done.document
    assert record["plan"]["playbook"] == "detector-pin"
    assert [item["playbook"] for item in record["extensions"]] == ["nms-cuda"]
    assert [item["number"] for item in record["rounds"]] == [1, 2]
    assert record["rounds"][0]["failed"]
    assert record["rounds"][1]["failed"] == []
    assert torchvision(case.prefix) == REPAIRED
    assert (case.prefix / "etc/envmedic/constraints.txt").read_text() == "detector<2\n"


@pytest.mark.parametrize("limit", [("--max-rounds", "1"), ("--playbook", "detector-pin")], ids=["rounds", "playbook"])
def test_without_leave_to_go_on_the_environment_is_unchanged(
    user: Shell, case: Case, log: Path, limit: tuple[str, str]
) -> None:
    original = state_of(case.prefix)
    arguments = ("--json", "--yes", "--no-gpu", "--log", str(log), "-p", str(case.prefix), *limit)
    done = user.envmedic("apply", *arguments)
    assert done.code == 4, done.told()
    assert done.document["extensions"] == []
    assert state_of(case.prefix) == original
