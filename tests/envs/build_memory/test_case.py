"""Fewer compilers run at a time once the environment says so."""

from __future__ import annotations

from pathlib import Path

from tests.support.building import activated, torch_wheel
from tests.support.native_case import build_native

LOG = Path(__file__).with_name("sample_killed.log")


def test_the_environment_limits_the_number_of_compilers(tmp_path: Path) -> None:
    case = build_native(tmp_path / "room", [torch_wheel(tmp_path / "wheels")], ["torch"], "")
    found = case.envmedic("diagnose", str(LOG), "-p", str(case.prefix), "--json").document
    assert next((item["playbook"], item["confirmed"]) for item in found["findings"]) == ("build-memory", True)
    done = case.apply("--log", str(LOG))
    assert done.code == 0, done.told()
    assert activated(case, "echo $MAX_JOBS").out == "2\n"


def test_a_number_that_the_user_chose_stays(tmp_path: Path) -> None:
    case = build_native(tmp_path / "room", [torch_wheel(tmp_path / "wheels")], ["torch"], "")
    done = case.apply("--log", str(LOG), MAX_JOBS="1")
    assert done.code == 1, done.told()
