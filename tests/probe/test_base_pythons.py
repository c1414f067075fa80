"""Which Pythons of the host may take the place of a virtual environment's own, as root."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envmedic.probe.layout import Layout
from envmedic.probe.prefix import base_pythons

NOBODY = 65534
NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"
STARTED = f'#!/bin/sh\n: > "${{0%/*}}/started"\nexec {sys.executable} "$@"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that pyvenv.cfg names, with a Python that tells that it was started; there is no other one."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("HOME", "/nonexistent")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / NAME).write_text(STARTED)
    (tmp_path / "home" / NAME).chmod(0o755)
    return tmp_path / "home"


def replacement(home: Path) -> str | None:
    return base_pythons.replacement(Layout(home.parent / "env", "venv", {"home": str(home)}, (NAME,)))


def test_the_former_home_is_asked_first(home: Path) -> None:
    found = replacement(home)
    assert found is not None
    assert Path(found).samefile(Path(sys._base_executable))  # type: ignore[attr-defined]
    assert (home / "started").exists()


@pytest.mark.parametrize("of", ["directory", "program"])
def test_root_neither_starts_nor_takes_what_another_user_can_exchange(home: Path, of: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    os.chown(home if of == "directory" else home / NAME, NOBODY, NOBODY)
    assert replacement(home) is None or not str(replacement(home)).startswith(str(home))
    assert not (home / "started").exists()


def test_root_takes_no_base_of_another_user(home: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    base = tmp_path / "bob" / "python"
    base.parent.mkdir()
    base.write_text("")
    os.chown(base.parent, NOBODY, NOBODY)
    (home / NAME).write_text(f"#!/bin/sh\necho True {base}\n")
    assert replacement(home) != str(base)
