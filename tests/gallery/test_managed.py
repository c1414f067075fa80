"""Environments of projects and of conda: a sound one has no complaint, a broken one is judged so, the reference repairs it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.cli.support import ROOT
from tests.gallery.repair_gallery.case import Case
from tests.gallery.repair_gallery.conda.faults import CONDA
from tests.gallery.repair_gallery.contest import broken, contest
from tests.gallery.repair_gallery.faults import Fault
from tests.gallery.repair_gallery.judge import Digests
from tests.gallery.repair_gallery.project_faults import PROJECTS
from tests.gallery.repair_gallery.projects import PDM, UV, Project, own_index
from tests.gallery.repair_gallery.room import Untried
from tests.gallery.repair_gallery.tools import TOOLS, Handed

BY_PIP = "a release by pip that its neighbour does not know"


def of(name: str) -> Fault:
    return next(fault for fault in (*PROJECTS, *CONDA) if fault.name == name)


def judged(name: str, folder: Path) -> None:
    """The judge sees complaints where nothing is done, and none after the reference."""
    fault, seen = of(name), []

    def idle(handed: Handed) -> int:
        seen.append(handed.room.complaints())
        return 0

    with broken(Case((fault,)), folder, Digests()) as made:
        assert contest(made, "idle", idle).ending == "not repaired"
        assert seen[0], "what made the environment has nothing to say of a broken one"
        ended = contest(made, "reference", TOOLS["reference"])
    assert (ended.ending, ended.harm) == ("repaired", ())


@pytest.mark.projects
@pytest.mark.parametrize("tool", ["uv", "poetry", "pdm"])
def test_a_project_is_judged_by_its_own_tool(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [str(ROOT / "build" / "project-tools" / name / "bin") for name in ("poetry", "pdm")]
    monkeypatch.setenv("PATH", os.pathsep.join((*places, os.environ["PATH"])))
    judged(f"{tool}: {BY_PIP}", tmp_path)


@pytest.mark.conda
def test_an_environment_of_conda_is_judged_by_its_records(tmp_path: Path) -> None:
    judged("conda: a file deleted", tmp_path)


def test_a_tool_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert Path(UV.program).is_file()  # it is a library's
    with pytest.raises(Untried, match="pdm is not on PATH"):
        _ = PDM.program


def test_manifests_and_locks_beside_an_environment_are_part_of_its_content(tmp_path: Path) -> None:
    project = Project(tmp_path / ".venv", UV)
    kept = ("pyproject.toml", "uv.lock", "till/pyproject.toml")
    for name in (*kept, ".venv/lib/pyproject.toml", ".envmedic/tx/uv.lock", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert {str(path.relative_to(tmp_path)) for path in project.beside} == set(kept)


@pytest.mark.parametrize(
    ("settings", "environ", "index"),
    [
        ("", {}, r"https://[\w.]+/simple"),
        ("[global]\nindex-url = https://me:word@ours/simple\n", {}, "https://me:word@ours/simple"),
        ("[global]\nindex-url = https://ours/simple\n[install]\nindex-url = https://own/it's\n", {}, "https://own/it's"),
        ("[global]\nindex-url = https://ours/simple\n", {"PIP_INDEX_URL": "https://mine/simple"}, "https://mine/simple"),
    ],
)  # fmt: skip
def test_a_project_of_poetry_names_the_index_that_pip_asks(
    settings: str, environ: dict[str, str], index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.conf").write_text(settings)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / "nobody"))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    for name, value in {**environ, "PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}.items():
        monkeypatch.setenv(name, value)
    assert re.fullmatch(index, own_index.__wrapped__())


def test_every_fault_of_a_tool_has_a_scene_and_a_reference() -> None:
    assert len({fault.name for fault in (*PROJECTS, *CONDA)}) == len(PROJECTS) + len(CONDA)
    assert all(fault.scene and fault.reference for fault in (*PROJECTS, *CONDA))
