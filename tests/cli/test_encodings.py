"""Locales whose encoding isn't UTF-8, as on old login nodes, and what a bug leaves on the terminal."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from envmedic.cli import bugs
from envmedic.errors import InternalError
from envmedic.render.cells import width
from envmedic.render.encodings import CELLS, WORDS, tolerate


def written(text: str, signs: str, encoding: str) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    tolerate(stream, signs)
    stream.write(text)
    stream.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("command", ["", "diagnose", "run", "apply", "plan", "playbooks"])
@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_help_is_printed_in_any_encoding(command: str, encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "envmedic", *command.split(), "--help"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Usage: envmedic" in done.stdout.decode(encoding)
    assert b"\\u" not in done.stdout


def test_signs_become_others_that_mean_the_same() -> None:
    assert written("✗ torch → 2.5 … ✓", WORDS, "latin-1") == "x torch -> 2.5 ... +"
    assert written("▸ runs ⠹ ⋮ ■", WORDS, "latin-1") == "> runs * : #"
    assert written("Müller 日", WORDS, "latin-1") == "Müller \\u65e5"


def test_on_a_screen_they_are_as_wide_as_what_they_stand_for() -> None:
    text = "╭─ Home ─╮│ ✓ … → 日本 ▸ ▏█ ╰╯"
    shown = written(text, CELLS, "latin-1")
    assert len(shown) == width(text)
    assert shown.startswith("+- Home -+| + ~ > ???? >")
    assert "\\" not in shown


def test_a_bug_leaves_its_traceback_in_a_file_of_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    told = bugs.kept(
        InternalError("A bug of envmedic: KeyError: 'x'", cause="envmedic 1", details=("Traceback: here",))
    )
    (file,) = bugs.folder().iterdir()
    assert "Traceback: here" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert told.details == ()
    assert str(file) in (told.hint or "")


def test_where_no_file_can_be_written_the_traceback_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    error = InternalError("A bug of envmedic: KeyError: 'x'", details=("Traceback: here",))
    assert bugs.kept(error) is error
