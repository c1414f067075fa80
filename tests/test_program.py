"""The end of the process, and its standard streams."""

from __future__ import annotations

import json
import os
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


EACH = """
import json, os, pathlib, sys, tempfile
import argparse, dataclasses, enum, msgspec, re, shutil, textwrap, typing  # once, for all forks

sys.argv = ["envmedic", "explain", "--json"]

def ended():
    streams = [tempfile.TemporaryFile() for _ in range(2)]
    child = os.fork()
    if not child:
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number + 1)
        from envmedic.__main__ import program
        os._exit(program())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for stream in streams:
        stream.seek(0)
    return code, *(stream.read().decode() for stream in streams)

answers = {}
for file in pathlib.Path("envmedic").rglob("*.pyc"):
    good = file.read_bytes()
    file.write_bytes(good[:len(good) // 2])
    answers[os.fspath(file.absolute())] = ended()
    file.write_bytes(good)
print(json.dumps(answers))
"""
"""Damages the byte code of each module by itself, and tells what the program says then."""


def test_damaged_byte_code_of_any_module_that_errors_need_is_named_too(tmp_path: Path) -> None:
    """Only damage to the two that Python loads before them is not: a full disk cuts no file that is shorter than a page."""
    shutil.copytree(Path(__main__.__file__).parent, tmp_path / "envmedic", ignore=shutil.ignore_patterns("*.pyc"))
    wrong = "import sys; from envmedic.__main__ import program; sys.argv = ['envmedic', 'explain', '--json']; program()"
    writing = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run([sys.executable, "-c", wrong], cwd=tmp_path, capture_output=True, check=False, env=writing)
    for file in (tmp_path / "envmedic/__pycache__").glob("__*.pyc"):
        assert 0 < file.stat().st_size < 4096
        file.unlink()
    done = subprocess.run([sys.executable, "-B", "-c", EACH], cwd=tmp_path, capture_output=True, text=True, check=True)
    answers = json.loads(done.stdout)
    assert {"errors", "program", "main", "output", "style"} <= {Path(name).name.partition(".")[0] for name in answers}
    for name, (code, out, err) in answers.items():
        assert (code, err.splitlines()[0]) == (1, f"error: The byte code in {name} is damaged")
        assert "Traceback" not in err
        assert json.loads(out)["code"] == "damaged-byte-code"


def test_a_module_whose_byte_code_is_other_than_its_source_is_named(tmp_path: Path) -> None:
    """Python takes it as it is: what fails then is no bug of ours."""
    shutil.copytree(Path(__main__.__file__).parent, tmp_path / "envmedic", ignore=shutil.ignore_patterns("*.pyc"))
    source = tmp_path / "envmedic/cli/commands/knowledge.py"
    compiled = Path(py_compile.compile(str(source), doraise=True) or "")
    content = compiled.read_bytes()
    assert b"settings_of" in content
    compiled.write_bytes(content.replace(b"settings_of", b"settings_if"))
    program = [sys.executable, "-B", "-m", "envmedic", "explain", "nms-cuda", "--json"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["code"]) == (1, "damaged-byte-code")
    assert str(compiled) in done.stderr
