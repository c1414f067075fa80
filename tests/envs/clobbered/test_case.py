"""Of two distributions that overwrite each other the wanted one stays, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.clobbered.case import build
from tests.real.manifest import manifest
from tests.support.venvs import site_packages

pytestmark = pytest.mark.long


def test_the_one_that_is_asked_for_is_left_with_all_its_files(tmp_path: Path) -> None:
    case = build(tmp_path)
    assert "open_window" in case.run().err
    before = manifest(case.prefix)
    done = case.apply()
    assert done.code == 0, done.told()
    plan = done.document["plan"]
    assert (plan["fault"], plan["playbook"]) == ("clobbered", "clobbered")
    assert [(item["kind"], item["name"]) for item in plan["changes"]] == [
        ("remove", "view-lite"),
        ("change", "view-full"),
    ]
    assert case.run().out == "a window by view-full\n"
    assert case.envmedic("undo", "-p", str(case.prefix), "--yes").code == 0
    assert manifest(case.prefix) == before


def test_where_both_are_asked_for_neither_goes(tmp_path: Path) -> None:
    case = build(tmp_path, requires=("view-full", "view-lite"))
    before = manifest(case.prefix)
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json").document
    assert found["verdict"] == "healthy"
    assert manifest(case.prefix) == before


def test_shared_files_of_equal_content_are_no_conflict(tmp_path: Path) -> None:
    case = build(tmp_path, requires=("view-full", "view-lite"))
    for info in site_packages(case.prefix).glob("view_*.dist-info"):
        record = info / "RECORD"
        lines = [line.partition(",")[0] + ",," for line in record.read_text().splitlines()]
        record.unlink()
        record.write_text("\n".join(lines) + "\n", encoding="utf-8")
    facts = case.envmedic("facts", "-p", str(case.prefix), "--json").document
    assert facts["environment"]["conflicts"] == []
