"""What torch itself requires is put right; what others require, where an error speaks of it."""

from __future__ import annotations

from pathlib import Path

from tests.envs.unmet_requirement.case import WORKS, build
from tests.support.repairs import found_by_facts, prove_repair


def test_what_torch_requires_is_found_by_facts_alone(tmp_path: Path) -> None:
    case = build(tmp_path, "starlette==0.36.3", "typing-extensions==4.4.0")
    changes = [("typing-extensions", "4.4.0", "4.12.2")]
    prove_repair(case, "unmet-requirement", list(changes), WORKS, log=False)


def test_a_name_that_is_not_there_leads_to_the_requirement(tmp_path: Path) -> None:
    case = build(tmp_path, "starlette==0.41.2", "typing-extensions==4.12.2")
    assert all(item.latent for item in found_by_facts(case).findings), (
        "a requirement alone may be stricter than it need be"
    )
    prove_repair(case, "unmet-requirement", [("starlette", "0.41.2", "0.36.3")], WORKS)
