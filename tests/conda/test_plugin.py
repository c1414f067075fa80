"""envmedic as a plugin of conda: the hint and the limit without conda, and both hooks in a real conda."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envmedic import conda_plugin
from tests.conda import cache, damage
from tests.conda.referee import Referee
from tests.conda.room import Room
from tests.gallery.repair_gallery.conda import client
from tests.support.venvs import uv

ROOT = Path(__file__).resolve().parents[2]
STDERR = logging.getLogger("conda.stderr")


class DryRun(Exception):
    """What conda raises at the end of a dry run."""

    return_code = 0


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """An environment, as far as the hint looks, with a space in its path."""
    (tmp_path / "my env" / "conda-meta").mkdir(parents=True)
    return tmp_path / "my env"


@pytest.fixture(autouse=True)
def _without_handlers() -> Iterator[None]:
    yield
    for one in [one for one in STDERR.handlers if isinstance(one, conda_plugin.Hint)]:
        STDERR.removeHandler(one)


def test_an_error_is_followed_by_the_command_once(prefix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # conda may run two commands in one process
        conda_plugin.add_hint("install", lambda: str(prefix))
    STDERR.info("no error")
    STDERR.error("one")
    STDERR.error("two")
    assert capsys.readouterr().err == f"envmedic: what is wrong there: envmedic diagnose -p '{prefix}'\n"


@pytest.mark.parametrize("error", [DryRun(), KeyboardInterrupt()], ids=repr)
def test_what_is_no_failure_has_no_hint(prefix: Path, capsys: pytest.CaptureFixture[str], error: BaseException) -> None:
    conda_plugin.add_hint("install", lambda: str(prefix))
    with contextlib.suppress(DryRun, KeyboardInterrupt):
        _tell(error)
    assert capsys.readouterr().err == ""


def _tell(error: BaseException) -> None:
    """Raise `error`, and tell of it as conda does."""
    try:
        raise error  # noqa: TRY301 - conda tells while it handles it
    except BaseException:
        STDERR.error("told")
        raise


def test_a_place_without_an_environment_has_no_hint(prefix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conda_plugin.add_hint("create", lambda: str(prefix.with_name("missing")))
    STDERR.error("failed")
    assert capsys.readouterr().err == ""


def test_nothing_is_raised_into_conda(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conda_plugin.add_hint("install")  # there is no conda here to ask for the prefix
    STDERR.error("failed")
    assert conda_plugin.conda_health_checks() == []
    assert conda_plugin.conda_pre_commands() == []
    monkeypatch.setattr(sys, "executable", str(prefix / "no-python"))
    conda_plugin.check(str(prefix))


def test_the_check_says_that_it_hit_its_limit(prefix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conda_plugin.check(str(prefix), limit_s=0.001)
    assert "not finished in 0.001 s, and stopped" in capsys.readouterr().out


def conda_with_envmedic() -> Path:
    """The program ``conda`` of an environment that has envmedic, too."""

    def install(prefix: Path) -> None:
        client.install(prefix)
        command = [uv(), "pip", "install", "--quiet", "--link-mode", "copy", "--python", str(prefix / "bin" / "python")]
        client.run([*command, "-e", str(ROOT)])

    made_of = [*client.made_of(), ROOT / "pyproject.toml", str(ROOT)]
    return cache.kept("plugin", made_of, install) / "bin" / "conda"


def conda(room: Room, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(conda_with_envmedic()), *arguments]
    return subprocess.run(command, env=room.environment, capture_output=True, text=True, check=False)


@pytest.mark.conda
def test_conda_doctor_tells_what_envmedic_finds(old: Room) -> None:
    prefix = Referee(old).create("env", ("python=3.11", "pip", "filelock"))
    sound = conda(old, "doctor", "-p", str(prefix))
    assert "Missing Files:" in sound.stdout
    assert "\nenvmedic:\n\n" in sound.stdout, sound.stdout + sound.stderr
    damage.edit_in_place(prefix, "filelock", "filelock/__init__.py")
    record = next((prefix / "conda-meta").glob("filelock-*.json"))
    record.write_text("{", encoding="utf-8")
    broken = conda(old, "doctor", "-p", str(prefix))
    assert "filelock" in broken.stdout.partition("\nenvmedic:\n")[2], broken.stdout + broken.stderr


@pytest.mark.conda
def test_a_failing_command_is_followed_by_the_hint(old: Room) -> None:
    prefix = Referee(old).create("env", ("python=3.11", "filelock"))
    hint = f"envmedic: what is wrong there: envmedic diagnose -p {prefix}\n"
    failed = conda(old, "install", "-p", str(prefix), "no-such-package")
    assert failed.returncode == 1
    assert failed.stderr.count(hint) == 1, failed.stderr
    for arguments in (("list", "-p", str(prefix)), ("install", "-p", str(prefix), "--dry-run", "tqdm")):
        done = conda(old, *arguments)
        assert done.returncode == 0, done.stderr
        assert "envmedic" not in done.stdout + done.stderr
