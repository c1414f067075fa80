"""One plan for a class of machines: made once, checked and carried out on each, without resolving there.

A machine is a copy of the environment at one path, put there in place of the one before, with a cache of its own.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.support import Done, Shell, failure, torchvision
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case
from tests.support.venvs import site_packages

pytestmark = pytest.mark.long


@dataclass(frozen=True)
class Fleet:
    """Machines with the same environment, and a plan for all of them."""

    case: Case
    user: Shell
    room: Path
    plan: Path

    @property
    def original(self) -> Path:
        """The environment as it is on every machine."""
        return self.room / "original"

    def machine(self, name: str) -> Shell:
        """Another machine: no history beside the environment, whose files have other times, and an empty cache."""
        shutil.rmtree(self.case.prefix)
        shutil.rmtree(self.case.prefix.parent / ".envmedic", ignore_errors=True)
        shutil.copytree(self.original, self.case.prefix, symlinks=True, copy_function=shutil.copy)
        home = self.room / name
        home.mkdir()
        # nobody to ask: the index that the first machine had is not known here
        return Shell(home, {"PIP_CONFIG_FILE": "/dev/null", "UV_NO_CONFIG": "1"})

    def apply(self, user: Shell, *more: str) -> Done:
        """Carry the plan out, as an engine does."""
        links = ("--offline", "--find-links", str(self.room / "shared"))
        return user.envmedic("apply", str(self.plan), "--yes", "--json", *links, *(more or ("--no-gpu",)))


@pytest.fixture
def fleet(case: Case, user: Shell, room: Path) -> Fleet:
    found = Fleet(case, user, room, room / "plan.json")
    shutil.copytree(case.prefix, found.original, symlinks=True)
    done = user.envmedic(
        "plan", "--playbook", "nms-cuda", "-p", str(case.prefix), "--for-class", "-o", str(found.plan), "--fetch"
    )
    assert done.code == 0, done.told()
    assert "For every machine with this content" in done.out
    # handed over by a directory that all machines see; the one where the plan was made is gone
    case.wheels.rename(room / "shared")
    shutil.rmtree(case.prefix.parent / "index")
    shutil.rmtree(user.home / ".cache")
    return found


def test_each_machine_of_the_class_is_repaired_once(fleet: Fleet) -> None:
    plan = json.loads(fleet.plan.read_text())
    assert plan["environment_digest"] == ""
    for name in ("n1", "n2"):
        machine = fleet.machine(name)
        done = fleet.apply(machine)
        assert (done.code, done.document["outcome"]) == (0, "repaired"), done.told()
        assert torchvision(fleet.case.prefix) == REPAIRED
        assert done.document["plan"]["class_plan"] == plan["id"]
        assert done.document["plan"]["environment_digest"] != ""
        again = fleet.apply(machine)
        assert (again.code, again.document["outcome"]) == (0, "already"), again.told()
        assert again.document["transaction"] == done.document["transaction"]


def test_what_keeps_a_machine_from_it_has_a_word_and_an_exit_code(fleet: Fleet) -> None:
    machine = fleet.machine("n1")
    stray = site_packages(fleet.case.prefix) / "mine.py"
    stray.write_text("")
    refused_as(fleet.apply(machine), 8, "other-class")
    stray.unlink()
    # no GPU here, and nobody waived the proof on one
    refused_as(fleet.apply(machine, "--timeout", "600"), 4, "failed")
    lacking = machine.envmedic("apply", str(fleet.plan), "--yes", "--json", "--no-gpu", "--offline")
    refused_as(lacking, 1, "refused")
    assert torchvision(fleet.case.prefix) == BROKEN
    assert fleet.apply(machine).code == 0
    stray.write_text("")
    refused_as(fleet.apply(machine), 2, "changed")


def refused_as(done: Done, code: int, outcome: str) -> None:
    assert (done.code, done.document["outcome"]) == (code, outcome), done.told()
    assert done.document["environment"] == "unchanged"


def test_it_is_written(reader: Shell, shared: Case) -> None:
    done = reader.envmedic("plan", "--playbook", "nms-cuda", "-p", str(shared.prefix), "--for-class")
    failure(done, code=2, kind="input", says="other machines")


def test_another_gpu_is_another_class(fleet: Fleet) -> None:
    machine = fleet.machine("n1")
    facts = json.loads(machine.envmedic("facts", "--host-only", "--json").out)
    facts["host"] |= {"driver_version": "550.54", "gpus": [{"index": 0, "name": "A100", "compute_capability": "8.0"}]}
    (fleet.room / "host.json").write_text(json.dumps(facts))
    done = fleet.apply(machine, "--no-gpu", "--host", str(fleet.room / "host.json"))
    refused_as(done, 8, "other-class")
    assert done.document["cause"] == "GPUs 8.0 in place of none; driver branch 550 in place of none"


def test_a_plan_is_foreseen_and_taken_back_once(fleet: Fleet) -> None:
    machine = fleet.machine("n1")
    links = ("--offline", "--find-links", str(fleet.room / "shared"))
    foreseen = machine.envmedic("apply", str(fleet.plan), "--dry-run", "--json", "--no-gpu", *links)
    assert (foreseen.code, foreseen.document["class_plan"]) == (0, json.loads(fleet.plan.read_text())["id"])
    undo = ("undo", "--plan", str(fleet.plan), "--json")
    failure(machine.envmedic(*undo, "--yes"), code=2, kind="input", says="nothing to undo")
    done = fleet.apply(machine)
    again = machine.envmedic("apply", str(fleet.plan), "--dry-run", "--json", "--no-gpu", *links)
    assert (again.code, again.document["outcome"]) == (0, "already")
    told = machine.envmedic(*undo, "--dry-run")
    assert (told.code, told.document["transaction"]) == (0, done.document["transaction"])
    assert torchvision(fleet.case.prefix) == REPAIRED
    back = machine.envmedic(*undo, "--yes")
    assert (back.code, back.document["state"]) == (0, "undone"), back.told()
    assert torchvision(fleet.case.prefix) == BROKEN
    twice = machine.envmedic(*undo, "--yes")
    assert (twice.code, twice.document["outcome"]) == (0, "already"), twice.told()
    (site_packages(fleet.case.prefix) / "mine.py").write_text("")
    stray = machine.envmedic("apply", str(fleet.plan), "--dry-run", "--json", "--no-gpu", *links)
    refused_as(stray, 8, "other-class")


def test_a_later_repair_is_not_taken_back_with_it(fleet: Fleet) -> None:
    machine = fleet.machine("n1")
    assert fleet.apply(machine).code == 0
    wheel = next((fleet.room / "shared").glob("box_labels-*.whl"))
    later = machine.envmedic(
        "uv", "-p", str(fleet.case.prefix), "--yes", "pip", "install", "--no-deps", "--force-reinstall", str(wheel)
    )
    assert later.code == 0, later.told()
    done = machine.envmedic("undo", "--plan", str(fleet.plan), "--yes", "--json")
    failure(done, code=2, kind="input", says="after this plan")
    assert torchvision(fleet.case.prefix) == REPAIRED
