"""Repairs in projects of the real poetry and the real PDM, which judge them: their next sync has nothing to do.

Both know no index in a directory, so that a server on the loopback interface has it; nothing else is asked.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.support import ROOT, Done, Shell
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, TORCH, Case, build
from tests.support.index import serve
from tests.support.venvs import make_venv, python_of, uv

pytestmark = pytest.mark.projects
TOOLS = ROOT / "build" / "project-tools"
MANIFEST = """\
[project]
name = "shop"
version = "1"
requires-python = ">=3.10,<4"
dependencies = ["torch=={torch}", "torchvision{limit}", "numpy", "pillow"]
"""
OF_POETRY = '[tool.poetry]\npackage-mode = false\n[[tool.poetry.source]]\nname = "mini"\nurl = "{index}/"\n'
OF_PDM = '[tool.pdm]\ndistribution = false\n[[tool.pdm.source]]\nname = "pypi"\nurl = "{index}"\nverify_ssl = false\n'
NEW, OLD = (text.partition("+")[0] for text in (REPAIRED, BROKEN))


@dataclass(frozen=True)
class Tool:
    """A tool of projects, and what it says where nothing is to do."""

    name: str
    table: str
    lock: tuple[str, ...]
    sync: tuple[str, ...]
    dry: tuple[str, ...]
    nothing: str
    overrides: str
    """A table that lets the resolver take a torch that a wheel refuses; empty where the tool has none."""
    variables: Mapping[str, str] = field(default_factory=dict)


POETRY = Tool(
    "poetry", OF_POETRY, ("lock",), ("install",), ("sync", "--dry-run"), "0 installs, 0 updates, 0 removals", "",
    {"POETRY_VIRTUALENVS_IN_PROJECT": "true", "POETRY_NO_INTERACTION": "1"},
)  # fmt: skip
PDM = Tool(
    "pdm", OF_PDM, ("lock",), ("sync",), ("sync", "--clean", "--dry-run"), "All packages are synced to date",
    '[tool.pdm.resolution.overrides]\ntorch = "{torch}"\n', {"PDM_CHECK_UPDATE": "0"},
)  # fmt: skip


@dataclass(frozen=True)
class Shop:
    """A project with its tool."""

    tool: Tool
    folder: Path
    case: Case
    index: str

    @property
    def prefix(self) -> Path:
        return self.folder / ".venv"

    def write(self, *, limit: str = "", overrides: bool = False) -> None:
        """Write the manifest."""
        more = self.tool.overrides if overrides else ""
        text = (MANIFEST + self.tool.table + more).format(torch=TORCH, limit=limit, index=self.index)
        (self.folder / "pyproject.toml").write_text(text, encoding="utf-8")

    def run(self, *words: str) -> str:
        """What the tool prints, with a home and a cache of its own."""
        home = self.folder.parent / "home"
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "NO_COLOR": "1",
            "LC_ALL": "C.UTF-8",
            **self.tool.variables,
        }
        program = TOOLS / self.tool.name / "bin" / self.tool.name
        done = subprocess.run(
            [program, *words], cwd=self.folder, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def files(self) -> dict[str, bytes]:
        """Manifest and lock."""
        return {name: (self.folder / name).read_bytes() for name in ("pyproject.toml", f"{self.tool.name}.lock")}

    def drift(self) -> None:
        """Put the torchvision of another torch into the environment, behind the tool's back."""
        index = ["--no-config", f"--python={python_of(self.prefix)}", "--no-deps", f"--default-index={self.case.index}"]
        subprocess.run([uv(), "pip", "install", "--quiet", *index, f"torchvision=={OLD}"], check=True)


@pytest.fixture(params=[POETRY, PDM], ids=lambda tool: tool.name)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    case = build(tmp_path)
    with serve(tmp_path / "index") as server:
        made = Shop(request.param, tmp_path / "shop", case, server.url)
        made.folder.mkdir()
        make_venv(made.prefix)
        made.write()
        if made.tool is PDM:
            made.run("use", "-f", str(python_of(made.prefix)))
        made.run(*made.tool.lock)
        made.run(*made.tool.sync)
        yield made


@pytest.fixture
def user(tmp_path: Path) -> Shell:
    """Somebody without an index of their own: the project's is the only one that can be reached."""
    (tmp_path / "empty").mkdir()
    tools = (TOOLS / tool / "bin" for tool in ("poetry", "pdm"))
    path = os.pathsep.join((*map(str, tools), os.environ["PATH"]))
    variables = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": (tmp_path / "empty").as_uri(), "PATH": path}
    return Shell(tmp_path / "user", variables)


def repaired(user: Shell, shop: Shop, *options: str) -> Done:
    done = user.envmedic("apply", "--playbook", "nms-cuda", "--no-gpu", "--yes", *options, "-p", str(shop.prefix))
    assert done.code == 0, done.told()
    return done


def test_a_drifted_environment_is_as_the_lock_says(user: Shell, shop: Shop) -> None:
    healthy = user.envmedic("diagnose", "-p", str(shop.prefix))
    assert healthy.code == 0, healthy.told()
    shop.drift()
    assert shop.tool.nothing not in shop.run(*shop.tool.dry)
    found = user.envmedic("diagnose", "-p", str(shop.prefix))
    assert f"{shop.folder}/{shop.tool.name}.lock:" in found.out
    done = repaired(user, shop)
    assert "next `" not in done.out
    assert shop.tool.nothing in shop.run(*shop.tool.dry)


@pytest.mark.parametrize("shop", [PDM], indirect=True, ids=["pdm"])  # poetry locks no pair that refuses each other
def test_a_lock_with_the_fault_is_named_with_the_command_that_changes_it(user: Shell, shop: Shop) -> None:
    shop.write(limit=f"<={OLD}", overrides=True)
    shop.run(*shop.tool.lock)
    shop.run(*shop.tool.sync)
    shop.write(overrides=True)
    shop.run("lock", "--update-reuse")
    before = shop.files()
    done = repaired(user, shop)
    assert f"torchvision {NEW} -> {OLD} ({shop.folder}/{shop.tool.name}.lock:" in done.out
    keep = f"{shop.tool.name} add torchvision=={NEW}"
    assert f"To keep it: `{keep}`" in done.out
    assert shop.tool.nothing not in shop.run(*shop.tool.dry)
    assert shop.files() == before
    undone = user.envmedic("undo", "--yes", "-p", str(shop.prefix))
    assert undone.code == 0, undone.told()
    edited = repaired(user, shop, "--edit-project")
    assert f"pyproject.toml and {shop.tool.name}.lock in {shop.folder} agree with the repair" in edited.out
    assert shop.tool.nothing in shop.run(*shop.tool.dry)
    undone = user.envmedic("undo", "--yes", "-p", str(shop.prefix))
    assert undone.code == 0, undone.told()
    assert shop.files() == before


def test_what_its_commands_would_do_is_foreseen(user: Shell, shop: Shop) -> None:
    name, before = shop.tool.name, shop.files()

    def asked(line: str) -> Done:
        return user.envmedic("guard", "--json", "-p", str(shop.prefix), line, folder=shop.folder)

    same = asked(f"{name} install")
    assert (same.code, same.document["changes"]) == (0, []), same.told()
    removed = asked(f"{name} remove torchvision")
    assert [(row["name"], row["after"]) for row in removed.document["changes"]] == [("torchvision", None)], (
        removed.told()
    )
    shop.drift()
    back = asked(f"{name} install")
    assert [(row["name"], row["before"], row["after"]) for row in back.document["changes"]] == [
        ("torchvision", BROKEN, REPAIRED)
    ], back.told()
    assert shop.files() == before


def test_the_lock_is_what_its_tool_exports(user: Shell, shop: Shop) -> None:
    lock = str(shop.folder / f"{shop.tool.name}.lock")
    same = user.envmedic("verify", "--no-gpu", "-p", str(shop.prefix), "--lock", lock)
    assert same.code == 0, same.told()
    shop.drift()
    other = user.envmedic("verify", "--no-gpu", "-p", str(shop.prefix), "--lock", lock)
    assert other.code == 1, other.told()
    assert f"torchvision {OLD}" in other.out or BROKEN in other.out
