"""The end of the process, and its standard streams."""

from __future__ import annotations

import json
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envmedic import __main__

ENDING = """
import atexit, sys
from envmedic import __main__
sys.argv = ["envmedic", *{arguments}]
atexit.register(print, "registered")
sys.exit(__main__.program())
"""


def ended(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ENDING.format(arguments=list(arguments))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        lambda content: content[:16],
        lambda content: content[:16] + b"\xff" * 99,
        lambda content: content[:16] + b"N",
    ],
    ids=["cut", "header alone", "other bytes", "no code"],
)
def test_damaged_byte_code_is_named_and_no_bug(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Python before 3.13 keeps what it could write of it when a disk is full."""
    shutil.copytree(Path(__main__.__file__).parent, tmp_path / "envmedic", ignore=shutil.ignore_patterns("*.pyc"))
    source = tmp_path / "envmedic/cli/commands/knowledge.py"
    compiled = Path(py_compile.compile(str(source), doraise=True) or "")
    compiled.write_bytes(damage(compiled.read_bytes()))
    program = [sys.executable, "-B", "-m", "envmedic", "explain", "nms-cuda", "--json"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    error = json.loads(done.stdout)
    assert (done.returncode, error["code"]) == (1, "damaged-byte-code")
    assert str(compiled) in error["summary"]


@pytest.mark.parametrize("module", ["cli/main.py", "cli/parser.py", "render/style.py"])
def test_damaged_byte_code_of_what_reports_errors_is_named_too(module: str, tmp_path: Path) -> None:
    shutil.copytree(Path(__main__.__file__).parent, tmp_path / "envmedic", ignore=shutil.ignore_patterns("*.pyc"))
    compiled = Path(py_compile.compile(str(tmp_path / "envmedic" / module), doraise=True) or "")
    compiled.write_bytes(_cut(compiled.read_bytes()))
    program = [sys.executable, "-B", "-m", "envmedic", "explain", "nms-cuda"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[0] == f"error: The byte code in {compiled} is damaged"
    assert "Traceback" not in done.stderr
