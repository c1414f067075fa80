"""protobuf goes to a release that all that depend on it accept."""

from __future__ import annotations

from pathlib import Path

from envmedic.probe.environment import observe_environment
from tests.envs.protobuf_version.case import WORKS, build
from tests.planner.remedies.helpers import decided
from tests.support.repairs import found_by_facts, prove_repair


def test_the_release_that_all_accept_comes(tmp_path: Path) -> None:
    case = build(tmp_path, "5.29.1")
    found = decided("protobuf-version", observe_environment(case.prefix))
    assert found.install == ("protobuf!=4.24.0,<4,>=3.19.6,>=3.20.2",)
    prove_repair(case, "protobuf-version", [("protobuf", "5.29.1", "3.20.3")], WORKS)


def test_one_that_all_accept_is_healthy(tmp_path: Path) -> None:
    assert found_by_facts(build(tmp_path, "3.20.3")).verdict == "healthy"
