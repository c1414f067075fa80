"""What no index can give again is told, and left as it is."""

from __future__ import annotations

from pathlib import Path

from envmedic.diagnosis.vocabulary import derive
from envmedic.model.facts import Facts, Host
from envmedic.probe.environment import observe_environment
from tests.envs.half_installed_elsewhere.case import build, damage_conda
from tests.real.manifest import manifest


def test_it_is_told_what_to_do_and_nothing_is_touched(tmp_path: Path) -> None:
    case = build(tmp_path)
    assert "No module named 'grid.shapes'" in case.run().err
    before = manifest(case.prefix)
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json").document["findings"]
    assert [(item["fault"], item["playbook"]) for item in found] == [("half-installed", "half-installed-elsewhere")]
    done = case.apply()
    assert done.code == 1, done.told()
    assert "Put these back yourself: grid" in done.told()
    assert manifest(case.prefix) == before


def test_packages_of_conda_are_held_against_their_records(tmp_path: Path) -> None:
    case = build(tmp_path)
    damage_conda(case)
    derived = derive(Facts(host=Host(), environment=observe_environment(case.prefix)))
    assert derived["files.beyond-index"] == ("grid",)
    assert derived["conda.damaged"] == ("libgrid",)
    problems = derived["files.problems"]
    assert isinstance(problems, tuple)
    assert problems[-1] == "libgrid 1.5: 1 of 3 files missing: lib/libgrid.so.1; cut off: lib/libcut.so.1"
