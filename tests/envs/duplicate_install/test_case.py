"""Copies and remains go, and the version that is wanted comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.duplicate_install.case import BROKEN, OLD, build
from tests.real.manifest import manifest
from tests.support.venvs import site_packages

pytestmark = pytest.mark.long

WORKS = f"4 of 4 cells by grid {OLD}\n"


@pytest.mark.parametrize("way", BROKEN)
def test_one_copy_of_the_right_version_is_left(tmp_path: Path, way: str) -> None:
    case = build(tmp_path)
    assert case.run().out == WORKS
    BROKEN[way](case)
    assert case.run().code != 0
    before = manifest(case.prefix)
    done = case.apply()
    assert done.code == 0, done.told()
    assert (done.document["plan"]["fault"], done.document["plan"]["playbook"]) == ("duplicate-install",) * 2
    assert case.run().out == WORKS
    found = sorted(path.name for path in site_packages(case.prefix).iterdir() if "rid" in path.name)
    assert found == ["grid", f"grid-{OLD}.dist-info"]
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before


def test_remains_beside_a_sound_copy_are_all_that_goes(tmp_path: Path) -> None:
    case = build(tmp_path)
    site = site_packages(case.prefix)
    (site / "~rid").mkdir()
    (site / "~rid" / "core.py").write_text("old\n", encoding="utf-8")
    sound = manifest(site / "grid")
    done = case.apply()
    assert done.code == 0, done.told()
    assert done.document["plan"]["changes"] == []
    assert not (site / "~rid").exists()
    assert manifest(site / "grid") == sound
    assert case.run().out == WORKS


def test_what_pip_says_of_remains_is_confirmed_by_them(tmp_path: Path) -> None:
    case = build(tmp_path)
    BROKEN["interrupted_uninstall"](case)
    log = case.room / "pip.log"
    log.write_text(f"WARNING: Ignoring invalid distribution ~rid ({site_packages(case.prefix)})\n", encoding="utf-8")
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json", str(log)).document["findings"][0]
    assert (found["fault"], found["confirmed"], found["signature"]) == ("duplicate-install", True, "leftover")
    assert case.apply("--log", str(log)).code == 0
    assert case.run().out == WORKS
