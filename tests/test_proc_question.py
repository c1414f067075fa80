"""Questions to other programs: what differs from `proc.run` is how they are started, not what comes of it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from envmedic.owner import User
from envmedic.proc import Question, ask
from tests.support.forking import children
from tests.test_proc import PYTHON, SH, alive, busy_threads, ends, grandchild_script, open_files, script


def test_streams_and_exit_status_are_returned() -> None:
    result = ask([SH, "-c", "echo out; echo err >&2; exit 3"], timeout_s=10)
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert result.argv == (SH, "-c", "echo out; echo err >&2; exit 3")
    assert not result.timed_out


def test_killed_by_another_is_no_timeout() -> None:
    result = ask([SH, "-c", "kill -KILL $$"], timeout_s=30)
    assert result.signal == signal.SIGKILL
    assert not result.timed_out


def test_environment_working_directory_and_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "kept")
    monkeypatch.setenv("GONE", "gone")
    text = 'cat; echo "$KEPT ${GONE-none} $NEW"; pwd -P'
    result = ask([SH, "-c", text], timeout_s=10, env={"GONE": None, "NEW": "new"}, cwd=str(tmp_path))
    assert result.stdout == f"kept none new\n{tmp_path.resolve()}\n"


def test_open_files_are_not_inherited(tmp_path: Path) -> None:
    code = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:4])"
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        result = ask([PYTHON, "-c", code], timeout_s=10)
    assert result.stdout == "[0, 1, 2, 3]\n"  # 3 is that of the listing


@pytest.mark.parametrize(
    ("text", "mode", "expected"),
    [
        ("#!/nonexistent/interpreter\n", 0o755, errno.ENOENT),
        ("echo no shebang line\n", 0o755, errno.ENOEXEC),
        ("#!/bin/sh\n", 0o644, errno.EACCES),
        ("\x7fELF\x02\x01\x01 damaged", 0o755, errno.ENOEXEC),
    ],
)
def test_a_program_that_cannot_be_started_is_an_error_of_the_system(
    tmp_path: Path, text: str, mode: int, expected: int
) -> None:
    program = script(tmp_path / "program", text, mode)
    before = open_files()
    with pytest.raises(OSError, match=os.strerror(expected)) as caught:
        ask([program], timeout_s=10)
    assert (caught.value.errno, caught.value.filename) == (expected, program)
    assert open_files() == before
    assert not children()


def test_a_missing_directory_and_an_impossible_word_are_errors_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        ask([SH, "-c", "exit"], timeout_s=10, cwd=str(tmp_path / "gone"))
    with pytest.raises(OSError, match="Invalid argument"):
        ask([SH, "-c", "a\0b"], timeout_s=10)


def test_a_timeout_kills_the_program_and_its_children_and_keeps_what_it_said(tmp_path: Path) -> None:
    argv, pids = grandchild_script(tmp_path)
    argv[-1] = f"echo before; {argv[-1]}"
    started = time.monotonic()
    result = ask(argv, timeout_s=3)
    assert (result.timed_out, result.returncode, result.stdout) == (True, -signal.SIGKILL, "before\n")
    assert time.monotonic() - started < 300
    assert all(ends(int(pid)) for pid in pids.read_text().split())


def test_an_answer_in_time_counts_however_late_it_is_heard() -> None:
    with closing(Question([SH, "-c", "echo here"], timeout_s=0.5)) as question:
        question.begin()
        time.sleep(1.0)
        result = question.answer()
    assert (result.returncode, result.stdout, result.timed_out) == (0, "here\n", False)


def test_a_program_that_closes_its_outputs_has_the_same_time() -> None:
    quick = ask([SH, "-c", "exec >&- 2>&-; sleep 0.3; exit 5"], timeout_s=30)
    assert (quick.timed_out, quick.returncode) == (False, 5)
    slow = ask([SH, "-c", "exec >&- 2>&-; exec sleep 60"], timeout_s=0.5)
    assert (slow.timed_out, slow.returncode) == (True, -signal.SIGKILL)


def test_a_background_process_that_keeps_the_output_open_is_not_waited_for_long() -> None:
    started = time.monotonic()
    result = ask([SH, "-c", "echo said; setsid sleep 600 & echo $!"], timeout_s=400)
    assert result.stdout.startswith("said\n")
    assert (result.returncode, result.timed_out) == (0, False)
    assert time.monotonic() - started < 300
    left = int(result.stdout.split()[-1])
    assert alive(left)
    os.kill(left, signal.SIGKILL)


def test_an_interruption_kills_the_program(tmp_path: Path) -> None:
    argv, pids = grandchild_script(tmp_path)
    former = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            ask(argv, timeout_s=30)
    finally:
        signal.signal(signal.SIGALRM, former)
    assert all(ends(int(pid)) for pid in pids.read_text().split())
    assert not children()


def test_nothing_is_warned_of_with_threads_running() -> None:
    code = "import envmedic.proc as q; print(q.ask(['/bin/true'], timeout_s=9).returncode)"
    with busy_threads():
        result = subprocess.run([PYTHON, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("0\n", "")


def test_sh_is_not_loaded() -> None:
    code = "import sys, envmedic.proc as q; q.ask(['/bin/true'], timeout_s=9); print('sh' in sys.modules)"
    assert ask([sys.executable, "-c", code], timeout_s=30).stdout == "False\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_root_runs_it_as_another_user() -> None:
    nobody = User(65534, 65534, (65534,), "nobody", "/")
    result = ask([SH, "-c", "id -u; id -g; id -G"], timeout_s=10, cwd="/", user=nobody)
    assert result.stdout == "65534\n65534\n65534\n"
