"""An environment whose Python is gone is told what it needs, and left as it is."""

from __future__ import annotations

from pathlib import Path

from tests.envs.broken_interpreter.case import build
from tests.real.manifest import manifest


def test_it_is_found_and_nothing_is_touched(tmp_path: Path) -> None:
    case = build(tmp_path)
    before = manifest(case.prefix)
    found = case.envmedic("diagnose", "-p", str(case.prefix), "--json")
    assert found.code == 1
    first = found.document["findings"][0]
    assert (first["fault"], first["playbook"], first["confirmed"]) == ("half-installed", "broken-interpreter", True)
    done = case.apply()
    assert done.code == 1, done.told()
    assert "uv venv --allow-existing" in done.told()
    assert manifest(case.prefix) == before
