"""Repairs in real projects of uv: the project's lock decides how long they last."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.cli.support import Shell
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, TORCH, Case
from tests.support.venvs import editable_project, uv

PLAN = ("plan", "--playbook", "nms-cuda", "--no-gpu")
APPLY = ("apply", "--playbook", "nms-cuda", "--no-gpu", "--yes")
MANIFEST = """\
[project]
name = "shop"
version = "1"
requires-python = ">=3.10"
dependencies = ["torch", "torchvision", "numpy", "pillow"]
[tool.uv]
override-dependencies = ["torch=={torch}"]
resolution = "{resolution}"
{more}
[[tool.uv.index]]
name = "mini"
url = "{index}"
default = true
"""


def run_uv(folder: Path, *words: str) -> str:
    """What uv prints in a project, without the machine's settings."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "VIRTUAL_"))}
    variables["UV_PYTHON"] = sys.executable
    variables["UV_CACHE_DIR"] = str(folder / "cache")
    done = subprocess.run([uv(), *words], cwd=folder, capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def project(shared: Case, tmp_path: Path) -> Path:
    """A project of uv whose lock holds a torchvision of another torch."""
    folder = tmp_path / "shop"
    folder.mkdir()
    more = f'constraint-dependencies = ["torchvision<={BROKEN}"]'
    write_manifest(folder, shared, resolution="highest", more=more)
    run_uv(folder, "sync")
    return folder


def write_manifest(folder: Path, shared: Case, *, resolution: str, more: str = "") -> None:
    """Write the manifest; the lowest torchvision of the index is of another torch."""
    text = MANIFEST.format(torch=TORCH, resolution=resolution, index=shared.index, more=more)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")


def test_a_repair_that_the_next_sync_undoes_says_so(reader: Shell, shared: Case, project: Path) -> None:
    write_manifest(project, shared, resolution="lowest")
    run_uv(project, "lock")
    run_uv(project, "sync")
    planned = reader.envmedic(*PLAN, "--json", "-p", str(project / ".venv"))
    assert planned.code == 0, planned.told()
    (undone,) = planned.document["next_sync"]["undoes"]
    version = REPAIRED.partition("+")[0]
    assert undone.startswith(f"torchvision {version} -> {BROKEN.partition('+')[0]} ({project}/uv.lock:")
    done = reader.envmedic(*APPLY, "-p", str(project / ".venv"))
    assert done.code == 0, done.told()
    assert "until the next `uv sync`" in done.out
    assert f"The next `uv sync` in {project} undoes this: {undone}" in done.out
    assert f"To keep it: `uv add torchvision=={version}`" in done.out
    assert f"+ torchvision=={BROKEN.partition('+')[0]}" in run_uv(project, "sync", "--dry-run")


def test_a_repair_as_the_lock_says_leaves_the_sync_nothing_to_do(reader: Shell, shared: Case, project: Path) -> None:
    write_manifest(project, shared, resolution="highest", more=f'constraint-dependencies = ["torchvision=={REPAIRED}"]')
    run_uv(project, "lock")
    told = reader.envmedic(*PLAN, "-p", str(project / ".venv"))
    assert f"`uv sync` in {project} is the repair of the tool itself" in told.out, told.told()
    seen = reader.envmedic("facts", "-p", str(project / ".venv"))
    assert f"torchvision {BROKEN} is installed, and {project}/uv.lock:" in seen.out
    done = reader.envmedic(*APPLY, "-p", str(project / ".venv"))
    assert done.code == 0, done.told()
    assert "next `uv sync`" not in done.out
    assert "Would make no changes" in run_uv(project, "sync", "--dry-run")


def test_a_constraint_of_the_project_is_walked_around_when_that_is_allowed(
    reader: Shell, shared: Case, project: Path
) -> None:
    held, where = f"torchvision<={BROKEN.partition('+')[0]}", ("-p", str(project / ".venv"))
    write_manifest(project, shared, resolution="highest", more=f'constraint-dependencies = ["{held}"]')
    files = [(project / name).read_bytes() for name in ("pyproject.toml", "uv.lock")]
    owner = reader.having(UV_NO_CONFIG="false")
    refused = owner.envmedic(*PLAN, *where, "--json", folder=project)
    assert refused.code == 1
    assert f"{project}/pyproject.toml:9 says {held}" in refused.document["cause"]
    done = owner.envmedic(*APPLY, *where, "--allow", "pinned", folder=project)
    assert done.code == 0, done.told()
    assert f"Walks around a pin (--allow pinned): {project}/pyproject.toml:9 says {held}" in done.out
    assert f"change `{held}` there to `torchvision<={REPAIRED.partition('+')[0]}`" in done.out
    assert f"The next `uv sync` in {project} undoes this" in done.out
    assert [(project / name).read_bytes() for name in ("pyproject.toml", "uv.lock")] == files


EDIT = (*APPLY, "--edit-project")


@pytest.fixture
def owner(reader: Shell) -> Shell:
    """Somebody whose uv reads the settings of the project."""
    return reader.having(UV_NO_CONFIG="false")


def locked_badly(project: Path, shared: Case, more: str = "") -> dict[str, bytes]:
    """Lock and install the lowest torchvision; returns manifest and lock."""
    write_manifest(project, shared, resolution="lowest", more=more)
    run_uv(project, "lock")
    run_uv(project, "sync")
    return {name: (project / name).read_bytes() for name in ("pyproject.toml", "uv.lock")}


def test_manifest_and_lock_are_edited_with_the_repair_and_go_back_with_it(
    owner: Shell, shared: Case, project: Path
) -> None:
    before, where = locked_badly(project, shared), ("-p", str(project / ".venv"))
    planned = owner.envmedic(*PLAN, *where)
    version = REPAIRED.partition("+")[0]
    assert f'+    "torchvision=={version}",' in planned.out, planned.told()
    assert {name: (project / name).read_bytes() for name in before} == before
    done = owner.envmedic(*EDIT, *where)
    assert done.code == 0, done.told()
    assert f"pyproject.toml and uv.lock in {project} agree with the repair" in done.out
    assert "until the next" not in done.out
    assert "Would make no changes" in run_uv(project, "sync", "--dry-run")
    written = {name: (project / name).read_bytes() for name in before}
    assert f'"torchvision=={version}"'.encode() in written["pyproject.toml"]
    back = owner.envmedic("undo", "--yes", *where)
    assert back.code == 0, back.told()
    assert f"pyproject.toml and uv.lock in {project} are as they were before the repair" in back.out
    assert {name: (project / name).read_bytes() for name in before} == before
    forth = owner.envmedic("redo", "--yes", *where)
    assert forth.code == 0, forth.told()
    assert {name: (project / name).read_bytes() for name in before} == written
    assert "Would make no changes" in run_uv(project, "sync", "--dry-run")


def test_what_was_edited_since_stays_and_is_shown(owner: Shell, shared: Case, project: Path) -> None:
    before, where = locked_badly(project, shared), ("-p", str(project / ".venv"))
    assert owner.envmedic(*EDIT, *where).code == 0
    manifest = project / "pyproject.toml"
    manifest.write_text(
        manifest.read_text(encoding="utf-8").replace('version = "1"', 'version = "7"'), encoding="utf-8"
    )
    now = {name: (project / name).read_bytes() for name in before}
    back = owner.envmedic("undo", "--yes", *where)
    assert back.code == 0, back.told()
    assert {name: (project / name).read_bytes() for name in before} == now
    assert (
        f"pyproject.toml and uv.lock in {project} stay as they are, since they were edited after the repair; "
        "the project's next sync installs what they say" in back.out
    )
    assert '+version = "7"' in back.out
    assert f'-    "torchvision=={REPAIRED.partition("+")[0]}",' in back.out


def test_yes_alone_does_not_write_into_the_project(owner: Shell, shared: Case, project: Path) -> None:
    before, where = locked_badly(project, shared), ("-p", str(project / ".venv"))
    done = owner.envmedic(*APPLY, *where)
    assert done.code == 0, done.told()
    assert "until the next `uv sync`" in done.out
    assert {name: (project / name).read_bytes() for name in before} == before


def test_a_plan_of_another_manifest_is_stale(owner: Shell, shared: Case, project: Path) -> None:
    locked_badly(project, shared)
    where = ("-p", str(project / ".venv"))
    assert owner.envmedic(*PLAN, "-o", str(project / "plan.json"), *where).code == 0
    manifest = project / "pyproject.toml"
    manifest.write_text(manifest.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    done = owner.envmedic("apply", str(project / "plan.json"), "--no-gpu", "--yes", "--edit-project")
    assert done.code == 2, done.told()
    assert f"{manifest} has changed since the plan was made" in done.err
    done = owner.envmedic("apply", str(project / "plan.json"), "--no-gpu", "--yes")
    assert done.code == 0, done.told()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('[tool.uv.sources]\nnumpy = { path = "../numpy" }', "Distribution not found at"),
        ('[[tool.uv.index]]\nname = "near"\nurl = "wheels"\nexplicit = true', "an index in a directory relative to"),
    ],
)
def test_a_project_that_a_copy_cannot_stand_for_is_left_with_the_command(
    owner: Shell, shared: Case, project: Path, more: str, why: str
) -> None:
    before = locked_badly(project, shared)
    manifest = project / "pyproject.toml"
    manifest.write_bytes(before["pyproject.toml"] + more.encode())
    planned = owner.envmedic(*PLAN, "-p", str(project / ".venv"))
    assert planned.code == 0, planned.told()
    assert "To keep it: `uv add torchvision==" in planned.out
    told = " ".join(planned.out.split())
    assert "envmedic does not do that itself: " in told
    assert why in told


def test_the_command_that_keeps_a_repair_names_every_group_that_asks(owner: Shell, shared: Case, project: Path) -> None:
    locked_badly(project, shared, '[dependency-groups]\nnight = ["torchvision"]')
    planned = owner.envmedic(*PLAN, "-p", str(project / ".venv"), "--json")
    found, pin = planned.document["next_sync"], f"torchvision=={REPAIRED.partition('+')[0]}"
    assert found["keeps"] == ["uv", "add", "--frozen", pin], planned.told()
    assert found["more"] == [["uv", "add", "--frozen", "--group", "night", pin], ["uv", "lock"]]
    again = owner.envmedic(*EDIT, "-p", str(project / ".venv"))
    assert again.code == 0, again.told()
    assert "Would make no changes" in run_uv(project, "sync", "--dry-run")


@pytest.fixture
def explicit(shared: Case, tmp_path: Path) -> Path:
    """A project whose torchvision comes from an index of its own, with other files of the same releases."""
    folder = tmp_path / "shop"
    folder.mkdir()
    files = tmp_path / "own" / "torchvision"
    shutil.copytree(shared.wheels, tmp_path / "own" / "files")
    rows = []
    for path in sorted((tmp_path / "own" / "files").glob("torchvision-*.whl")):
        with zipfile.ZipFile(path, "a") as wheel:
            wheel.comment = b"built again"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        rows.append(f'<a href="../files/{quote(path.name)}#sha256={digest}">{path.name}</a>')
    files.mkdir()
    (files / "index.html").write_text(
        "<!DOCTYPE html><html><body>" + "".join(rows) + "</body></html>", encoding="utf-8"
    )
    more = (
        f'constraint-dependencies = ["torchvision=={REPAIRED}"]\n[tool.uv.sources]\ntorchvision = {{ index = "own" }}'
    )
    write_manifest(folder, shared, resolution="highest", more=more)
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as manifest:
        manifest.write(f'[[tool.uv.index]]\nname = "own"\nurl = "{(tmp_path / "own").as_uri()}"\nexplicit = true\n')
    run_uv(folder, "sync")
    return folder


def test_a_drifted_environment_gets_the_files_of_its_lock(reader: Shell, shared: Case, explicit: Path) -> None:
    venv = explicit / ".venv"
    broken = BROKEN.partition("+")[0]
    drifted = ["pip", "install", "--no-config", "--python", str(venv / "bin" / "python"), "--no-deps"]
    run_uv(explicit, *drifted, "--default-index", shared.index, f"torchvision=={broken}")
    found = reader.envmedic("diagnose", "-p", str(venv))
    assert f"the project differs: torchvision {broken} is installed, and {explicit}/uv.lock:" in found.out.replace(
        BROKEN, broken
    )
    (own,) = (explicit.parent / "own" / "files").glob(f"torchvision-{REPAIRED}-*.whl")
    planned = reader.envmedic(*PLAN, "--json", "-p", str(venv))
    assert planned.code == 0, planned.told()
    digest = hashlib.sha256(own.read_bytes()).hexdigest()
    (artifact,) = (
        item
        for step in planned.document["steps"]
        for item in step.get("artifacts", ())
        if item["name"] == "torchvision"
    )
    assert (artifact["sha256"], artifact["url"]) == (digest, own.as_uri())
    done = reader.envmedic(*APPLY, "-p", str(venv))
    assert done.code == 0, done.told()
    assert "next `uv sync`" not in done.out
    assert "Would make no changes" in run_uv(explicit, "sync", "--dry-run")


def test_an_environment_is_compared_with_the_lock_of_uv(reader: Shell, project: Path) -> None:
    venv, lock = project / ".venv", project / "uv.lock"
    before = lock.read_bytes()
    same = reader.envmedic("verify", "--json", "--check", "pip-check", "--lock", str(lock), "-p", str(venv))
    assert same.document["compared"] == 4, same.told()
    assert same.document["differences"] == []
    drifted = ["pip", "uninstall", "--no-config", "--python", str(venv / "bin" / "python"), "pillow"]
    run_uv(project, *drifted)
    other = reader.envmedic("verify", "--json", "--check", "pip-check", "--lock", str(lock), "-p", str(venv))
    assert [(item["kind"], item["name"]) for item in other.document["differences"]] == [("missing", "pillow")]
    assert other.code == 1
    assert lock.read_bytes() == before


def test_a_project_that_uv_installs_itself_is_in_its_lock(reader: Shell, shared: Case, tmp_path: Path) -> None:
    folder = editable_project(tmp_path / "shop", "shop")
    own = (folder / "pyproject.toml").read_text(encoding="utf-8")
    index = f'[[tool.uv.index]]\nname = "mini"\nurl = "{shared.index}"\ndefault = true\n'
    text = own.replace('version = "0.1"', 'version = "0.1"\nrequires-python = ">=3.10"\ndependencies = ["pillow"]')
    (folder / "pyproject.toml").write_text(text + index, encoding="utf-8")
    run_uv(folder, "sync")
    lock = ("--lock", str(folder / "uv.lock"))
    same = reader.envmedic("verify", "--json", "--check", "pip-check", *lock, "-p", str(folder / ".venv"))
    assert (same.code, same.document["differences"], same.document["compared"]) == (0, [], 2), same.told()
    made = reader.envmedic("create", *lock, "-p", str(tmp_path / "new"))
    assert made.code == 0, made.told()
