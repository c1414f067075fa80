from __future__ import annotations

import py_compile
import shutil
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

import envmedic
from envmedic.api.context import subprocess_probe
from envmedic.api.context.observation import observe, observe_clone
from envmedic.api.context.settings import Settings
from envmedic.api.context.subprocess_probe import ChildProcess
from envmedic.api.diagnosis import diagnose
from envmedic.errors import DamagedByteCode, Interrupted, NotAnEnvironment
from envmedic.model.events import EventStream
from tests.support.venvs import make_venv

SETTINGS = Settings(stream=EventStream([]))


def test_it_is_the_diagnosis_that_this_process_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = make_venv(tmp_path / "env")
    (tmp_path / "envmedic.py").write_text("raise SystemExit('the wrong one')\n")
    monkeypatch.chdir(tmp_path)
    there = subprocess_probe.diagnose(SETTINGS, prefix, cancel=lambda: False)
    (here,) = diagnose(SETTINGS, prefix, [])
    assert there == here


def test_facts_are_observed_in_a_child_where_a_front_end_asks_for_it(tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    before = set(sys.modules)
    there = observe(replace(SETTINGS, observer=ChildProcess()), prefix)
    assert not {name for name in set(sys.modules) - before if name.startswith("envmedic.probe.binaries.load_checks")}
    assert there == observe(SETTINGS, prefix)
    clone = make_venv(tmp_path / "clone")
    copied = observe_clone(replace(SETTINGS, observer=ChildProcess()), clone, prefix)
    assert copied == observe_clone(SETTINGS, clone, prefix)
    assert copied.real_prefix == str(prefix)


def test_its_errors_are_raised_here(tmp_path: Path) -> None:
    with pytest.raises(NotAnEnvironment, match="holds no Python environment") as raised:
        subprocess_probe.diagnose(SETTINGS, tmp_path, cancel=lambda: False)
    assert raised.value.hint


def test_damaged_byte_code_is_named_in_a_child_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(Path(envmedic.__file__).parent, tmp_path / "envmedic", ignore=shutil.ignore_patterns("*.pyc"))
    compiled = Path(py_compile.compile(str(tmp_path / "envmedic/diagnosis/vocabulary.py"), doraise=True) or "")
    compiled.write_bytes(compiled.read_bytes()[:16])
    monkeypatch.setattr(envmedic, "__file__", str(tmp_path / "envmedic" / "__init__.py"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    prefix = make_venv(tmp_path / "env")
    with pytest.raises(DamagedByteCode, match="vocabulary"):
        subprocess_probe.diagnose(SETTINGS, prefix, cancel=lambda: False)


def test_it_can_be_stopped(tmp_path: Path) -> None:
    prefix = make_venv(tmp_path / "env")
    started = time.monotonic()
    with pytest.raises(Interrupted):
        subprocess_probe.diagnose(SETTINGS, prefix, cancel=lambda: time.monotonic() - started > 0.05)
