"""A test that hangs says where each of its processes stands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.support import stacks

FORKING = """
import os, time
def waits():
    time.sleep(600)
if os.fork() == 0:
    os.read(os.pipe()[0], 1)
print("ready", flush=True)
waits()
"""
HANGING = """
import subprocess, sys
def test_it():
    program = "def stuck(): input()\\nstuck()"
    with subprocess.Popen([sys.executable, "-X", "faulthandler", "-c", program],
                          stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.wait()
"""


def test_processes_with_their_stacks() -> None:
    argv = [sys.executable, "-X", "faulthandler", "-c", FORKING]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (fork,) = stacks.tree(process.pid)
        told = stacks.report(os.getpid())
        assert f"--- {fork} {sys.executable} -X faulthandler" in told
        assert ", call " in told
        assert f"--- {fork} says" in told
        assert "line 6 in <module>" in told
        assert "line 4 in waits" in told
        process.communicate()
    assert process.returncode == -signal.SIGABRT


def test_the_guard_of_a_test_reports_them(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(textwrap.dedent(HANGING), encoding="utf-8")
    argv = [sys.executable, "-m", "pytest", "-p", "tests.support.guard", "--timeout", "3", "-q", "-c", "/dev/null"]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [*argv, "--rootdir", str(tmp_path), str(tmp_path)], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "the test hangs: it did not end within 3 s" in done.stdout
    assert "in stuck" in done.stdout
