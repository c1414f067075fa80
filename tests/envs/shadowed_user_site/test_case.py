"""A package in the home directory is left out once the environment says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.envs.shadowed_user_site.case import HIDDEN, HOME, build
from tests.support.native_case import NativeCase


@pytest.fixture
def case(tmp_path: Path) -> NativeCase:
    """The environment, where this Python can be copied into one."""
    made = build(tmp_path)
    if made.run(PYTHONNOUSERSITE="1").code != 0:
        pytest.skip("a copy of this Python's program does not start elsewhere")
    return made


def test_the_environment_leaves_the_home_directory_out(case: NativeCase) -> None:
    assert case.run().out == f"4 of 4 cells by grid {HOME}\n"
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json").document["findings"]
    assert [(item["fault"], item["playbook"]) for item in found] == [("duplicate-install", "shadowed-user-site")]
    done = case.apply()
    assert done.code == 0, done.told()
    kept = json.loads((case.prefix / "conda-meta" / "state").read_text(encoding="utf-8"))["env_vars"]
    assert kept == {"PYTHONNOUSERSITE": "1"}
    assert case.run(**kept).out == f"4 of 4 cells by grid {HIDDEN}\n"


def test_the_same_version_at_home_hides_nothing(case: NativeCase) -> None:
    site = next((case.room / ".local" / "lib").glob("python*/site-packages"))
    for info in site.glob("grid-*.dist-info"):
        info.rename(site / f"grid-{HIDDEN}.dist-info")
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json").document
    assert found["verdict"] == "healthy"
