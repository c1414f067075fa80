"""A new environment at its place, whole or not at all, in both ways of staging."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from envmedic.engine.stage.runners import RelocateRunner
from envmedic.engine.transaction import create
from envmedic.errors import InputError, PreflightError
from envmedic.model.registries.modes import StagingMode
from tests.support.venvs import python_of, uv
from tests.support.wheels import make_wheel


def furnish(site: create.Site, wheels: Path) -> None:
    """A venv with a script in it, by commands that see the site."""
    for argv in (
        [uv(), "venv", "--quiet", "--no-config", "--allow-existing", str(site.seen)],
        [uv(), "pip", "install", "-q", "--no-config", f"--python={site.runner.python}", f"--find-links={wheels}",
         "--no-index", "--link-mode=copy", "tool"],
    ):  # fmt: skip
        result = site.runner(argv)
        assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("staging", ["namespace", "relocate"])
def test_scripts_run_at_the_place_in_either_way(tmp_path: Path, staging: StagingMode) -> None:
    make_wheel(
        tmp_path / "wheels",
        "tool",
        "1.0",
        files={"tool.py": "import sys\ndef main():\n    print(sys.prefix)\n"},
        entry_points="[console_scripts]\ntool = tool:main\n",
    )
    prefix = tmp_path / "new"
    try:
        with create.made(prefix, staging=staging) as site:
            assert isinstance(site.runner, RelocateRunner) == (staging == "relocate")
            furnish(site, tmp_path / "wheels")
    except PreflightError as error:
        pytest.skip(f"no namespaces here: {error.cause}")
    assert subprocess.check_output([prefix / "bin" / "tool"], text=True).strip() == str(prefix)
    assert subprocess.run([python_of(prefix), "-c", "import tool"], check=False).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "wheels"]
    for path in (*(prefix / "bin").iterdir(), prefix / "pyvenv.cfg"):
        assert path.is_symlink() or str(site.tree).encode() not in path.read_bytes()


def _fail(prefix: Path) -> None:
    """Break off half way, with a directory that cannot be written to."""
    with create.made(prefix) as site:
        (site.tree / "locked").mkdir(mode=0o500)
        raise InterruptedError


def _overtaken(prefix: Path) -> None:
    with create.made(prefix) as site:
        (site.tree / "ours").touch()
        (prefix / "theirs").touch()


def test_nothing_is_left_of_what_fails(tmp_path: Path) -> None:
    with pytest.raises(InterruptedError):
        _fail(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_directory_that_was_there_stays_when_it_fails(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    with pytest.raises(InterruptedError):
        _fail(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_what_somebody_else_puts_there_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not empty any more"):
        _overtaken(tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["theirs"]
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_parent_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"), create.made(tmp_path / "no" / "new"):
        pass
