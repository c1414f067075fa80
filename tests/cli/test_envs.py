"""``envmedic envs``: a table for people, one document for programs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.support import ROOT, Shell
from tests.docs import schemas


def _conda(prefix: Path) -> Path:
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "conda-meta/history").write_text("==> 2024-01-01 00:00:00 <==\n# cmd: conda create -n lab\n")
    (prefix / "conda-meta/python-3.11.9-h1_0.json").write_text("{}")
    (prefix / "lib/python3.11/site-packages/torch-2.5.1.dist-info").mkdir(parents=True)
    return prefix


def _user(tmp_path: Path) -> Shell:
    home = tmp_path / "home"
    home.mkdir()
    lab = _conda(tmp_path / "envs/lab")
    (tmp_path / "home/.conda").mkdir()
    (tmp_path / "home/.conda/environments.txt").write_text(f"{tmp_path}/gone\n")
    return Shell(home, {"CONDA_ENVS_DIRS": str(tmp_path / "envs"), "CONDA_PREFIX": str(lab)})


def test_the_table_marks_the_active_one(tmp_path: Path) -> None:
    done = _user(tmp_path).envmedic("envs")
    assert done.code == 0, done.told()
    head, first, *rest = done.out.splitlines()
    assert head.split() == ["NAME", "PYTHON", "TORCH", "KIND", "PREFIX"]
    assert first.split() == ["*", "lab", "3.11.9", "2.5.1", "conda", str(tmp_path / "envs/lab")]
    assert rest[-1] == f"{tmp_path}/gone is listed, and no environment is there"


def test_the_document_answers_to_its_schema(tmp_path: Path) -> None:
    import jsonschema

    document = _user(tmp_path).envmedic("envs", "--json").document
    jsonschema.validate(document, schemas.schema("envs"))
    assert document["gone"] == [str(tmp_path / "gone")]
    lab = next(item for item in document["environments"] if item["name"] == "lab")
    assert lab == {
        "prefix": str(tmp_path / "envs/lab"), "name": "lab", "kind": "conda", "tool": "conda", "python": "3.11.9",
        "torch": "2.5.1", "active": True, "base": False, "found_by": "envs_dirs",
    }  # fmt: skip
    committed = json.loads((ROOT / "envmedic/schemas/envs-1.json").read_text())
    assert committed == json.loads(json.dumps(schemas.schema("envs")))


def test_what_is_listed_by_name_is_what_a_name_means(tmp_path: Path) -> None:
    user = _user(tmp_path)
    done = user.envmedic("history", "-n", "lab", "--json")
    assert done.document["prefix"] == str(tmp_path / "envs/lab"), done.told()
