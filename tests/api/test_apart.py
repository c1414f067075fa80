from __future__ import annotations

import time
from pathlib import Path

import pytest

from envmedic import api
from envmedic.errors import EnvmedicError, Interrupted
from envmedic.model.events import EventStream
from tests.support.venvs import make_venv

SETTINGS = api.Settings(stream=EventStream([]))


def test_it_is_the_diagnosis_that_this_process_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = make_venv(tmp_path / "env")
    (tmp_path / "envmedic.py").write_text("raise SystemExit('the wrong one')\n")
    monkeypatch.chdir(tmp_path)
    apart = api.diagnose_apart(SETTINGS, prefix, cancel=lambda: False)
    (here,) = api.diagnose(SETTINGS, prefix, [])
    assert apart == here


def test_its_errors_are_raised_here(tmp_path: Path) -> None:
    with pytest.raises(EnvmedicError, match="holds no Python environment") as raised:
        api.diagnose_apart(SETTINGS, tmp_path, cancel=lambda: False)
    assert raised.value.hint


def test_it_can_be_stopped(tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    started = time.monotonic()
    with pytest.raises(Interrupted):
        api.diagnose_apart(SETTINGS, prefix, cancel=lambda: time.monotonic() - started > 0.05)
