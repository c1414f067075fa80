"""Pins, the mark of frozen environments, and who owns an environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envmedic.conda_meta import history, pins_and_marks


def _prefix(root: Path, where: str = "env") -> Path:
    (root / where / "conda-meta").mkdir(parents=True)
    return root / where


def test_pins_are_lines_without_comments(tmp_path: Path) -> None:
    prefix = _prefix(tmp_path)
    (prefix / "conda-meta/pinned").write_text("\n# why\n numpy <2 \npython 3.11.*\n\n")
    assert pins_and_marks.pinned(prefix) == ("numpy <2", "python 3.11.*")
    (prefix / "conda-meta/pinned").unlink()
    assert pins_and_marks.pinned(prefix) == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [("", None), ('{"message": "ask IT"}', "ask IT"), ("{}", None), ("in use by all\n", "in use by all"), ("{", "{"),
     ('{"message": 3}', '{"message": 3}')],
)  # fmt: skip
def test_any_file_freezes(tmp_path: Path, content: str, message: str | None) -> None:
    prefix = _prefix(tmp_path)
    assert pins_and_marks.frozen(prefix) is None
    (prefix / "conda-meta/frozen").write_text(content)
    assert pins_and_marks.frozen(prefix) == pins_and_marks.Frozen(message=message)


@pytest.mark.parametrize(
    ("command", "tool"),
    [
        ("conda create -n x python", "conda"),
        ("/opt/conda/bin/conda create -n x", "conda"),
        ("/opt/conda/bin/python /opt/conda/bin/mamba install x", "mamba"),
        ("/opt/conda/lib/python3.11/site-packages/conda/__main__.py create", "conda"),
        ("/opt/bin/micromamba create -f env.yml", "micromamba"),
        ("constructor", "unknown"),
    ],
)
def test_the_first_revision_tells_the_tool(tmp_path: Path, command: str, tool: str) -> None:
    text = f"==> 2024-01-01 00:00:00 <==\n# cmd: {command}\n==> 2024-01-02 00:00:00 <==\n# cmd: envmedic apply\n"
    assert pins_and_marks.made_by(_prefix(tmp_path), history.read(text)) == tool


def test_pixis_environments_are_known_by_its_file_and_by_their_place(tmp_path: Path) -> None:
    prefix = _prefix(tmp_path, "detached")
    (prefix / "conda-meta/pixi").write_text("{}")
    assert pins_and_marks.made_by(prefix, ()) == "pixi"
    assert pins_and_marks.project(prefix) == pins_and_marks.CondaProject(
        tool="pixi", folder=None, environment="detached"
    )
    inside = _prefix(tmp_path, "project/.pixi/envs/default")
    (tmp_path / "project/pixi.toml").write_text("")
    assert pins_and_marks.made_by(inside, ()) == "pixi"
    expected = pins_and_marks.CondaProject(tool="pixi", folder=str(tmp_path / "project"), environment="default")
    assert pins_and_marks.project(inside) == expected


def test_pixis_own_file_names_project_and_environment(tmp_path: Path) -> None:
    prefix = _prefix(tmp_path, "cache/envs/x-1234")
    told = {"manifest_path": "/srv/app/pixi.toml", "environment_name": "gpu", "pixi_version": "0.81.0"}
    (prefix / "conda-meta/pixi").write_text(json.dumps(told))
    assert pins_and_marks.project(prefix) == pins_and_marks.CondaProject(
        tool="pixi", folder="/srv/app", environment="gpu"
    )
    (prefix / "conda-meta/pixi").write_text("{")
    assert pins_and_marks.project(prefix) == pins_and_marks.CondaProject(tool="pixi", folder=None, environment="x-1234")


def test_pixis_global_environments_have_no_project(tmp_path: Path) -> None:
    prefix = _prefix(tmp_path, "home/.pixi/envs/tools")
    assert pins_and_marks.project(prefix) == pins_and_marks.CondaProject(tool="pixi", folder=None, environment="tools")


def test_workspaces_are_told_from_condas_own_directory_in_the_home(tmp_path: Path) -> None:
    prefix = _prefix(tmp_path, ".conda/envs/default")
    revisions = history.read("==> 2024-01-01 00:00:00 <==\n# cmd: conda create -n default\n")
    assert pins_and_marks.made_by(prefix, revisions) == "conda"
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert pins_and_marks.made_by(prefix, revisions) == "conda"
    (tmp_path / "pyproject.toml").write_text("[tool.conda.workspace]\n")
    assert pins_and_marks.made_by(prefix, revisions) == "conda-workspaces"
