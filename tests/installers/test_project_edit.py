"""Manifest and lock as the real uv edits them in a copy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from envmedic.installers.projects import project_edit
from envmedic.installers.projects.project_copy import NoEditError
from envmedic.model.facts import Distribution, Environment, Interpreter, Origin
from envmedic.model.pins import Project
from tests.support.index import write_index
from tests.support.venvs import make_venv, uv
from tests.support.wheels import Wheel, make_wheel

MANIFEST = """\
[project]
name = "shop"
version = "1"
requires-python = ">=3.10"
dependencies = ["vision>=1"]   # what we sell
{more}
[[tool.uv.index]]
name = "mini"
url = "{index}"
default = true
"""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """vision needs array, which breaks it from release 2 on; tool is nobody's; lens 1 needs glass; each in two releases."""
    for name in os.environ:
        if name.startswith(("UV_", "PIP_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    wheels: list[Wheel] = [
        make_wheel(tmp_path / "wheels", name, version, requires=requires)
        for name, requires in (("vision", ["array"]), ("array", []), ("tool", ["array>=2"]), ("glass", []))
        for version in ("1.0", "2.0")
    ]
    wheels += [make_wheel(tmp_path / "wheels", "lens", "1.0", requires=["glass"])]
    wheels += [make_wheel(tmp_path / "wheels", "lens", "2.0")]
    return write_index(tmp_path / "index", wheels)


def project(tmp_path: Path, index: str, more: str = "", *, installed: str = "vision 2.0, array 2.0") -> Environment:
    """A locked project, with an environment beside it that is said to hold `installed`."""
    folder = tmp_path / "shop"
    folder.mkdir(exist_ok=True)
    text = MANIFEST.format(index=index, more=more)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    make_venv(folder / ".venv")
    command = [uv(), "lock", "--quiet", f"--python={sys.executable}"]
    subprocess.run(command, cwd=folder, check=True)
    pairs = (item.split() for item in installed.split(", "))
    return Environment(
        prefix=str(folder / ".venv"),
        real_prefix=str(folder / ".venv"),
        kind="uv",
        interpreter=Interpreter(path=str(folder / ".venv/bin/python"), starts=True),
        distributions=tuple(
            Distribution(
                name=name,
                version=version,
                metadata_path=f"{name}.dist-info",
                site="",
                owner="uv",
                origin=Origin(kind="index"),
            )
            for name, version in pairs
        ),
        project=Project(tool="uv", folder=str(folder), manifest="pyproject.toml", lock="uv.lock", sync=("uv", "sync")),
    )


def test_what_the_manifest_asks_for_is_added_and_the_files_stay_as_they_are(tmp_path: Path, index: str) -> None:
    environment = project(tmp_path, index)
    before = {path.name: path.read_bytes() for path in (tmp_path / "shop").iterdir() if path.is_file()}
    edit = project_edit.make(environment, ["vision<2"], {"vision": "1.0"}, offline=True)
    assert edit.command == ("uv", "add", "vision<2")
    manifest, lock = edit.files
    assert '"vision<2"' in manifest.after
    assert '+    "vision<2",' in manifest.diff
    assert lock.diff == "vision 2.0 -> 1.0\n"
    assert {path.name: path.read_bytes() for path in (tmp_path / "shop").iterdir() if path.is_file()} == before


@pytest.mark.parametrize("more", ["", '[tool.uv]\nconstraint-dependencies = ["array!=1.5", "tool<9"] # ours\n'])
def test_what_comes_with_others_is_limited(tmp_path: Path, index: str, more: str) -> None:
    environment = project(tmp_path, index, more)
    edit = project_edit.make(environment, ["array<2"], {"array": "1.0"}, offline=True)
    assert edit.command == ("uv", "lock")
    manifest, lock = edit.files
    limits = '"tool<9", "array<2"' if more else '"array<2"'
    assert f"constraint-dependencies = [{limits}]" in manifest.after
    assert 'dependencies = ["vision>=1"]   # what we sell' in manifest.after
    assert ("# ours" in manifest.after) == bool(more)
    assert lock.diff == "array 2.0 -> 1.0\n"


def test_without_the_extra_repair_a_limit_names_what_it_takes(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = project(tmp_path, index)
    monkeypatch.setitem(sys.modules, "tomlkit", None)
    with pytest.raises(NoEditError, match=r"takes tomlkit: pip install 'envmedic\[repair\]'"):
        project_edit.make(environment, ["array<2"], {"array": "1.0"}, offline=True)


def test_a_lock_that_would_move_others_is_not_written(tmp_path: Path, index: str) -> None:
    more = '[dependency-groups]\ndev = ["tool"]\n'
    environment = project(tmp_path, index, more, installed="vision 2.0, array 2.0, tool 2.0")
    with pytest.raises(NoEditError, match=r"`uv lock` fails: .*array"):
        project_edit.make(environment, ["array<2"], {"array": "1.0"}, offline=True)
    with pytest.raises(NoEditError, match=r"uv then locks array 2\.0, not 1\.0"):
        project_edit.make(environment, ["vision<2"], {"vision": "1.0", "array": "1.0"}, offline=True)


GROUP = '[dependency-groups]\nnight = ["tool==2.0"]\n'


def test_what_a_group_asks_for_stays_in_the_group(tmp_path: Path, index: str) -> None:
    environment = project(tmp_path, index, GROUP)
    edit = project_edit.make(environment, ["tool<2"], {"tool": "1.0"}, offline=True)
    assert (edit.command, edit.more) == (("uv", "add", "--group", "night", "tool<2"), ())
    assert '+    "tool<2",' in edit.files[0].diff


def test_what_comes_along_is_limited_only_where_the_lock_would_have_another_release(tmp_path: Path, index: str) -> None:
    more = '[dependency-groups]\nnight = ["lens"]\n'
    environment = project(tmp_path, index, more, installed="vision 2.0, array 2.0, lens 2.0")
    edit = project_edit.make(environment, ["lens<2", "glass==2.0"], {"lens": "1.0", "glass": "2.0"}, offline=True)
    assert edit.command == ("uv", "add", "--group", "night", "lens<2")
    assert "constraint-dependencies" not in edit.files[0].after
    edit = project_edit.make(environment, ["lens<2", "glass==1.0"], {"lens": "1.0", "glass": "1.0"}, offline=True)
    assert edit.command == ("uv", "add", "--group", "night", "lens<2")
    assert 'constraint-dependencies = ["glass==1.0"]' in edit.files[0].after


def test_several_groups_are_written_before_anything_is_locked(tmp_path: Path, index: str) -> None:
    more = GROUP + '[project.optional-dependencies]\nfast = ["tool==2.0"]\n'
    environment = project(tmp_path, index, more)
    edit = project_edit.make(environment, ["tool==1.0"], {"tool": "1.0"}, offline=True)
    assert [edit.command, *edit.more] == [
        ("uv", "add", "--frozen", "--group", "night", "tool==1.0"),
        ("uv", "add", "--frozen", "--optional", "fast", "tool==1.0"),
        ("uv", "lock"),
    ]
    assert edit.files[0].after.count('"tool==1.0"') == 2


def test_a_member_of_a_workspace_is_edited_where_it_asks(tmp_path: Path, index: str) -> None:
    member = tmp_path / "shop" / "members" / "till"
    member.mkdir(parents=True)
    text = '[project]\nname = "till"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["tool==2.0"]\n'
    (member / "pyproject.toml").write_text(text, encoding="utf-8")
    environment = project(tmp_path, index, '[tool.uv.workspace]\nmembers = ["members/*"]\n')
    edit = project_edit.make(environment, ["tool==1.0"], {"tool": "1.0"}, offline=True)
    assert edit.command == ("uv", "add", "--package", "till", "tool==1.0")
    assert [item.name for item in edit.files] == ["members/till/pyproject.toml", "uv.lock"]
    assert edit.files[1].diff == "tool 2.0 -> 1.0\n"
    assert (member / "pyproject.toml").read_text(encoding="utf-8") == text


def test_a_source_outside_of_the_project_is_named(tmp_path: Path, index: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "pyproject.toml").write_text('[project]\nname = "other"\nversion = "1"\n', encoding="utf-8")
    more = '[dependency-groups]\nown = ["other"]\n[tool.uv.sources]\nother = { path = "../other", editable = true }\n'
    environment = project(tmp_path, index, more)
    with pytest.raises(NoEditError, match=r"a source outside of its directory, \.\./other"):
        project_edit.make(environment, ["vision<2"], {"vision": "1.0"}, offline=True)


def test_what_is_installed_as_locked_stays_locked(tmp_path: Path, index: str) -> None:
    more = '[tool.uv]\nconstraint-dependencies = ["array<2"]\n'
    environment = project(tmp_path, index, more, installed="vision 2.0, array 1.0")
    with pytest.raises(NoEditError, match=r"uv then locks array 2\.0, and 1\.0 is installed"):
        project_edit.make(environment, ["array>=2"], {"vision": "2.0"}, offline=True)


def test_a_password_does_not_get_into_a_plan(tmp_path: Path, index: str) -> None:
    more = '[[tool.uv.index]]\nname = "own"\nurl = "https://me:hunter22@example.org/simple"\nexplicit = true\n'
    environment = project(tmp_path, index, more)
    with pytest.raises(NoEditError, match="holds a password") as caught:
        project_edit.make(environment, ["vision<2"], {"vision": "1.0"}, offline=True)
    assert "hunter22" not in str(caught.value)


def test_a_link_is_not_replaced(tmp_path: Path, index: str) -> None:
    environment = project(tmp_path, index)
    lock = tmp_path / "shop" / "uv.lock"
    lock.rename(tmp_path / "elsewhere")
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoEditError, match="is a link"):
        project_edit.make(environment, ["vision<2"], {"vision": "1.0"}, offline=True)


def test_a_project_of_another_tool_is_left(tmp_path: Path, index: str) -> None:
    environment = project(tmp_path, index)
    assert environment.project is not None
    other = msgspec.structs.replace(environment.project, tool="hatch")
    with pytest.raises(NoEditError, match="this is one of hatch"):
        project_edit.make(msgspec.structs.replace(environment, project=other), ["vision<2"], {}, offline=True)
