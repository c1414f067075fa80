"""Projects that a team installs from its own directories: relative entries of a lock, which goes where the team goes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.locks.world import World
from tests.support.venvs import editable_project, install_editable, python_of

FILES = {"pylock": "pylock.toml", "requirements": "requirements.txt"}


@pytest.fixture
def team(world: World) -> Path:
    """A repository with a project that is installed from it."""
    folder = world.room / "team"
    install_editable(world.prefix, editable_project(folder / "my lib", "mine"))
    (folder / ".git").mkdir()
    (folder / "locks").mkdir()
    return folder


def verified(world: World, file: Path, prefix: Path | None = None) -> Done:
    return world.user.envmedic(
        "verify", "--json", "--check", "pip-check", "--lock", str(file), "-p", str(prefix or world.prefix)
    )


@pytest.mark.parametrize("form", FILES)
def test_an_environment_with_a_local_project_passes_its_own_lock(world: World, team: Path, form: str) -> None:
    file = team / "locks" / FILES[form]
    done = world.lock("--format", form, "-o", str(file))
    assert done.code == 0, done.told()
    assert "../my lib" in file.read_text(encoding="utf-8")
    assert str(world.room) not in file.read_text(encoding="utf-8")
    found = verified(world, file)
    assert (found.code, found.document["differences"]) == (0, []), found.told()
    assert found.document["compared"] == 4


@pytest.mark.long
@pytest.mark.parametrize("form", FILES)
def test_it_is_made_again_wherever_the_repository_is(world: World, team: Path, form: str) -> None:
    file = team / "locks" / FILES[form]
    assert world.lock("--format", form, "-o", str(file)).code == 0
    there = Path(shutil.copytree(team, world.room / "checkout"))
    new = world.room / "new"
    made = world.user.envmedic("create", "--lock", str(there / "locks" / FILES[form]), "-p", str(new))
    assert made.code == 0, made.told()
    where = subprocess.run(
        [python_of(new), "-c", "import mine; print(mine.__file__)"], capture_output=True, text=True, check=True
    )
    assert where.stdout.strip() == str(there / "my lib" / "mine.py")
    shutil.rmtree(there / "my lib")
    made = world.user.envmedic(
        "create", "--json", "--lock", str(there / "locks" / FILES[form]), "-p", str(world.room / "b")
    )
    assert made.code == 2, made.told()
    assert "mine" in made.document["summary"]


def test_a_project_that_is_not_installed_is_missing(world: World, team: Path) -> None:
    file = team / "pylock.toml"
    assert world.lock("-o", str(file)).code == 0
    world.uv("pip", "uninstall", "-q", "--python", str(python_of(world.prefix)), "mine")
    found = verified(world, file)
    assert [(item["kind"], item["name"]) for item in found.document["differences"]] == [("missing", "mine")]


@pytest.mark.parametrize("form", FILES)
def test_what_a_lock_says_that_it_does_not_hold_is_known(world: World, team: Path, form: str) -> None:
    file = world.room / "elsewhere" / FILES[form]
    file.parent.mkdir()
    done = world.lock("--format", form, "-o", str(file))
    assert done.code == 1
    assert not file.exists()
    assert world.lock("--format", form, "--allow-incomplete", "-o", str(file)).code == 1
    assert str(team) not in file.read_text(encoding="utf-8")
    found = verified(world, file)
    assert (found.code, found.document["differences"]) == (0, []), found.told()
