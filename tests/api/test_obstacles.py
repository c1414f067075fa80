"""What is in the way of a repair is told with the diagnosis and the plan, before anybody applies it."""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.api.obstacles import in_diagnosis, protections
from envmedic.model.findings import Diagnosis
from envmedic.render.documents.diagnosis import diagnosis_lines
from envmedic.render.text import bare
from tests.planner.support import facts, finding


@pytest.mark.parametrize(
    ("marks", "says"),
    [
        ({"conda-meta/frozen": '{"message": "ask Ada"}'}, "frozen: ask Ada"),
        ({"conda-meta/history": "", "condabin/conda": ""}, "base environment"),
        ({"conda-meta/pixi": "{}"}, "pixi keeps it"),
        ({"lib/python3.11/EXTERNALLY-MANAGED": ""}, "another tool manages it"),
    ],
)
def test_a_protection_is_told_with_what_lifts_it(tmp_path: Path, marks: dict[str, str], says: str) -> None:
    for name, text in marks.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (found,) = protections(tmp_path)
    assert says in found.text
    assert "--allow" in found.hint


def test_a_diagnosis_tells_that_nothing_can_be_proven_on_a_gpu_here(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").touch()
    given = facts(gpus=())
    found = Diagnosis(prefix=str(tmp_path), facts=given, verdict="env", findings=(finding(),))
    (told,) = in_diagnosis(found).obstacles
    assert (told.kind, "--no-gpu" in told.hint) == ("unproven", True)
    assert any(told.text in bare(row) for row in diagnosis_lines(in_diagnosis(found)))
