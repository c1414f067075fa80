"""What an installed distribution requires and is not there is installed, where an error speaks of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.missing_requirement.case import WORKS, build
from tests.support.repairs import found_by_facts, prove_repair

pytestmark = pytest.mark.long


def test_what_is_required_and_not_there_is_installed(tmp_path: Path) -> None:
    case = build(tmp_path, "starlette==0.36.3")
    assert all(item.latent for item in found_by_facts(case).findings), "nobody may need that part"
    prove_repair(case, "missing-requirement", [("yaml-next", None, "1.2")], WORKS)


def test_what_another_fault_hid_is_repaired_in_a_further_round(tmp_path: Path) -> None:
    case = build(tmp_path, "starlette==0.41.2")
    done = case.apply("--log", str(case.log()))
    assert done.code == 0, done.told()
    first, second = (item["failed"] for item in done.document["rounds"])
    assert first == ["import server: fail, ModuleNotFoundError: No module named 'yaml_next'"], (
        "the reported import decides"
    )
    assert second == []
    assert "yaml_next" in done.document["rounds"][1]["because"]
    assert case.run().out == WORKS


def test_a_module_that_nobody_requires_is_left_alone(tmp_path: Path) -> None:
    case = build(tmp_path, "starlette==0.36.3", "yaml-next==1.2", program="import handlers\n")
    done = case.apply("--log", str(case.log()))
    assert done.code == 1
    told = done.told()
    assert "knows no repair" in told
    assert "companion-version (handlers is not installed, or is the program's own)" in told
    assert "Install what brings handlers" in told


def test_named_without_a_text_it_is_proven_by_the_requirements_alone(tmp_path: Path) -> None:
    case = build(tmp_path, "starlette==0.36.3")
    done = case.envmedic(
        "apply", "-p", str(case.prefix), "--playbook", "missing-requirement", "--yes", "--no-gpu", "--json"
    )
    assert done.code == 0, done.told()
    before, after = (
        [item["status"] for item in done.document[key] if item["check"] == "facts missing-requirement"]
        for key in ("checks_before", "checks_after")
    )
    assert (before, after) == (["fail"], ["pass"])
    assert case.run().out == WORKS
