"""The survey that begins before the rest of envmedic is loaded, and the end of its process."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from envmedic.ahead import Ahead
from envmedic.api.context import target
from envmedic.api.context.settings import NamedTarget, Settings
from envmedic.model.events import EventStream
from envmedic.tree.walk import survey
from tests.support.venvs import make_venv

ENDING = """
import atexit, sys
from envmedic import __main__
sys.argv = ["envmedic", *{arguments}]
atexit.register(print, "registered")
sys.exit(__main__.program())
"""


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    return make_venv(tmp_path / "env")


def _surveying(prefix: str) -> Ahead:
    ahead = Ahead()
    ahead.begin_survey(prefix)
    return ahead


def ended(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ENDING.format(arguments=list(arguments))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_survey_is_that_of_the_prefix_and_is_taken_once(prefix: Path) -> None:
    with closing(_surveying(str(prefix))) as ahead:
        taken = ahead.survey(prefix)
        assert taken is not None
        with closing(taken):
            assert taken.value() == survey(prefix)
        assert ahead.survey(prefix) is None


def test_another_prefix_has_none(prefix: Path, tmp_path: Path) -> None:
    with closing(_surveying(str(prefix))) as ahead:
        assert ahead.survey(tmp_path) is None
    with closing(Ahead()) as nothing:
        assert nothing.survey(prefix) is None


def test_the_spelling_is_that_of_the_options(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(prefix.parent))
    for spelled in (f"~/{prefix.name}", os.path.relpath(prefix), f"{prefix}/lib/.."):
        with closing(_surveying(spelled)) as ahead:
            taken = ahead.survey(prefix)
            assert taken is not None, spelled
            taken.close()


def test_what_is_not_there_is_told_by_whoever_waits(tmp_path: Path) -> None:
    with closing(_surveying(str(tmp_path / "gone"))) as ahead:
        taken = ahead.survey(tmp_path / "gone")
        assert taken is not None
        with closing(taken), pytest.raises(FileNotFoundError):
            taken.value()


def test_nothing_stays_behind(prefix: Path) -> None:
    _surveying(str(prefix)).close()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_survey_from_before_a_recovery_is_given_up(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(_surveying(str(prefix))) as ahead:
        settings = Settings(stream=EventStream([]), ahead=ahead)
        monkeypatch.setattr(target, "interrupted", lambda _: True)
        assert target.find_prefix(settings, NamedTarget(prefix=str(prefix))) == prefix
        assert ahead.survey(prefix) is None


def test_the_process_ends_with_its_exit_code_and_after_what_is_registered_for_its_end() -> None:
    done = ended("playbooks", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nms-cuda" in done.stdout
    assert done.stdout.endswith("registered\n")


def test_a_wrong_word_ends_it_with_the_code_of_usage() -> None:
    done = ended("diagnose", "--no-such-option")
    assert done.returncode == 2
    assert "no-such-option" in done.stderr


def test_a_reader_that_goes_away_is_no_trace_of_a_bug() -> None:
    program = [sys.executable, "-c", ENDING.format(arguments=["playbooks", "list"])]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_trace_of_a_bug(closed: str) -> None:
    program = f'exec "$0" -m envmedic playbooks list {closed}'
    done = subprocess.run(["/bin/sh", "-c", program, sys.executable], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("nms-cuda" in done.stdout) is (" >&-" not in f" {closed}")
