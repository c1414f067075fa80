"""The end of the process, and its standard streams."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
