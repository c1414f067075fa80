from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from envmedic import api
from envmedic.api.context.observation import observe_clone
from envmedic.errors import Interrupted, NotAnEnvironment
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


def test_facts_are_observed_apart_where_a_front_end_asks_for_it(tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    before = set(sys.modules)
    apart = api.observe(replace(SETTINGS, apart=True), prefix)
    assert not {name for name in set(sys.modules) - before if name.startswith("envmedic.probe.binaries.load_checks")}
    assert apart == api.observe(SETTINGS, prefix)
    clone = make_venv(tmp_path / "clone")
    there = observe_clone(replace(SETTINGS, apart=True), clone, prefix)
    assert there == observe_clone(SETTINGS, clone, prefix)
    assert there.real_prefix == str(prefix)


def test_its_errors_are_raised_here(tmp_path: Path) -> None:
    with pytest.raises(NotAnEnvironment, match="holds no Python environment") as raised:
        api.diagnose_apart(SETTINGS, tmp_path, cancel=lambda: False)
    assert raised.value.hint


def test_it_can_be_stopped(tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    started = time.monotonic()
    with pytest.raises(Interrupted):
        api.diagnose_apart(SETTINGS, prefix, cancel=lambda: time.monotonic() - started > 0.05)
