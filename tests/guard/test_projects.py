"""Guard in a project of uv: what its commands would do to the environment, asked of uv itself in a copy."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done, Shell
from tests.guard.conftest import looks
from tests.support.index import write_index
from tests.support.venvs import uv
from tests.support.wheels import make_wheel

MANIFEST = """\
[project]
name = "shop"
version = "1"
requires-python = ">=3.10"
dependencies = ["vision<2"]
[dependency-groups]
dev = ["tool==1.0"]
[[tool.uv.index]]
name = "mini"
url = "{index}"
default = true
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Shell]:
    """A synchronised project; each vision needs its own array."""
    root = tmp_path_factory.mktemp("project")
    wheels = [
        make_wheel(root / "wheels", name, version, requires=requires)
        for name, version, requires in (
            *(("vision", version, [f"array=={version}"]) for version in ("1.0", "2.0")),
            *(("array", version, []) for version in ("1.0", "2.0")),
            *(("tool", version, []) for version in ("1.0", "2.0")),
            ("spare", "1.0", []),
        )
    ]
    folder = root / "shop"
    folder.mkdir()
    text = MANIFEST.format(index=write_index(root / "index", wheels))
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    shell = Shell(root / "user", {"PIP_CONFIG_FILE": os.devnull})
    subprocess.run([uv(), "sync", "--quiet"], cwd=folder, env=shell.environment(), check=True)
    return folder, shell


def ask(shop: tuple[Path, Shell], line: str) -> Done:
    """Ask in the project's directory; nothing of it or of its environment changes."""
    folder, shell = shop
    before = looks(folder)
    done = shell.envmedic("guard", "--json", "-p", str(folder / ".venv"), line, folder=folder)
    assert looks(folder) == before
    return done


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("uv sync", []),
        ("uv sync --no-dev", [("tool", "1.0", None)]),
        ("uv add tool==2.0 --group dev", [("tool", "1.0", "2.0")]),
        ("uv add spare --group gpu", [("spare", None, "1.0")]),
        ("uv add spare --optional=x", [("spare", None, "1.0")]),
        ("uv remove vision", [("array", "1.0", None), ("vision", "1.0", None)]),
        ("uv add 'vision>=2'", [("array", "1.0", "2.0"), ("vision", "1.0", "2.0")]),
        ("uv run --no-sync python train.py", []),
        ("uv run python train.py", []),
        ("uv tool install ruff", []),
        ("!uv add tool==2.0 --group dev", [("tool", "1.0", "2.0")]),
    ],
)
def test_the_change_is_foreseen(
    shop: tuple[Path, Shell], line: str, changes: list[tuple[str, str | None, str | None]]
) -> None:
    done = ask(shop, line)
    assert (done.code, done.document["verdict"]) == (0, "harmless"), done.told()
    assert [(row["name"], row["before"], row["after"]) for row in done.document["changes"]] == changes


def test_a_lock_is_told_with_what_the_next_sync_does(shop: tuple[Path, Shell]) -> None:
    done = ask(shop, "uv lock --upgrade")
    assert (done.code, done.document["changes"]) == (0, []), done.told()
    assert done.document["summary"] == "it writes the lock alone; the next sync: it changes nothing"
    done = ask(shop, "uv add --no-sync spare")
    assert (done.code, done.document["changes"]) == (0, []), done.told()
    assert done.document["summary"].startswith("it writes manifest and lock alone; the next sync: ")
    assert "spare 1.0 added" in done.document["summary"]


def test_what_has_no_solution_fails(shop: tuple[Path, Shell]) -> None:
    done = ask(shop, "uv add 'array>=2'")
    assert (done.code, done.document["verdict"]) == (1, "fails"), done.told()
    assert "array" in done.document["summary"]


@pytest.mark.parametrize(
    ("line", "code", "verdict", "says"),
    [
        ("pip install --user tool", 1, "fails", "pip refuses --user in a virtual environment"),
        ("sudo pip install tool", 0, "harmless", "sudo runs the system's pip"),
        ("conda create -n other python", 0, "harmless", "makes another environment"),
        ("uv add ./local", 1, "unanswered", "which may be built first"),
    ],
)
def test_other_places_are_told(shop: tuple[Path, Shell], line: str, code: int, verdict: str, says: str) -> None:
    done = ask(shop, line)
    assert (done.code, done.document["verdict"]) == (code, verdict), done.told()
    assert says in done.document["summary"]


def test_another_project_than_the_environments_is_named(shop: tuple[Path, Shell]) -> None:
    done = ask(shop, "poetry add tool")
    assert done.code == 2
    assert "is not the environment of a project of poetry" in done.told()
