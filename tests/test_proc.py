from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from envmedic import proc
from envmedic.model.ports import CommandResult
from envmedic.proc.output import KEPT_CHARACTERS
from tests.support.forking import children

PYTHON = sys.executable
SH = "/bin/sh"


def script(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def closes(before: set[str]) -> bool:
    """Wait until no more files are open than before: threads of sh close theirs once they have read to the end."""
    deadline = time.monotonic() + 1800
    while not open_files() <= before and time.monotonic() < deadline:
        time.sleep(0.01)
    return open_files() <= before


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before the opening, or before the reading
        return False


def ends(pid: int) -> bool:
    """Whether a process is gone within a few seconds; another process reaps it."""
    deadline = time.monotonic() + 1800
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def in_thread(work: Callable[[], CommandResult]) -> CommandResult:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(timeout=60)


@contextmanager
def busy_threads() -> Iterator[None]:
    """Threads that run meanwhile, as those of a front end do."""
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_streams_and_exit_status_are_returned() -> None:
    result = proc.run([SH, "-c", "echo out; echo err >&2; exit 3"])
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert result.argv == (SH, "-c", "echo out; echo err >&2; exit 3")
    assert not result.timed_out
    assert result.signal is None


def test_a_signal_is_a_result() -> None:
    result = proc.run([SH, "-c", "kill -SEGV $$"])
    assert result.signal == signal.SIGSEGV
    assert not result.timed_out


def test_killed_by_another_is_no_timeout() -> None:
    result = proc.run([SH, "-c", "kill -KILL $$"], timeout_s=30)
    assert result.signal == signal.SIGKILL
    assert not result.timed_out


def test_arguments_reach_the_program_byte_for_byte(tmp_path: Path) -> None:
    words = ["", "-a", "--long=1", "two words", "é", os.fsdecode(b"\xff"), "*", "line\nend"]
    report = tmp_path / "argv"
    proc.run(
        [
            PYTHON,
            "-c",
            f"import os, sys; open({str(report)!r}, 'wb').write(os.fsencode('\\0'.join(sys.argv[1:])))",
            *words,
        ]
    )
    assert report.read_bytes().split(b"\0") == [os.fsencode(word) for word in words]


def test_environment_is_laid_over_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "kept")
    monkeypatch.setenv("GONE", "gone")
    result = proc.run([SH, "-c", 'echo "$KEPT ${GONE-none} $NEW"'], env={"GONE": None, "NEW": "new"})
    assert result.stdout == "kept none new\n"


def test_there_is_no_input_and_no_terminal() -> None:
    result = proc.run(
        [PYTHON, "-c", "import sys; print([f.isatty() for f in (sys.stdin, sys.stdout, sys.stderr)], sys.stdin.read())"]
    )
    assert result.stdout == "[False, False, False] \n"


def test_working_directory(tmp_path: Path) -> None:
    assert proc.run(["/bin/pwd", "-P"], cwd=str(tmp_path)).stdout == f"{tmp_path.resolve()}\n"


def test_lines_are_passed_on_as_they_come() -> None:
    came: list[tuple[str, float]] = []
    proc.run(
        [SH, "-c", "echo first; sleep 0.5; echo second >&2"], on_line=lambda line: came.append((line, time.monotonic()))
    )
    assert [line for line, _ in came] == ["first", "second"]
    assert came[1][1] - came[0][1] > 0.3


def test_the_end_of_long_output_is_kept() -> None:
    result = proc.run([PYTHON, "-c", "for n in range(100_000): print('line', n)"])
    assert result.stdout.endswith("line 99999\n")
    assert len(result.stdout) <= KEPT_CHARACTERS


def test_undecodable_output_is_replaced() -> None:
    assert proc.run([SH, "-c", r"printf 'a\377b\n'"]).stdout == "a\ufffdb\n"


def test_open_files_are_not_inherited(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        result = proc.run([PYTHON, "-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:4])"])
    assert result.stdout == "[0, 1, 2, 3]\n"  # 3 is that of the listing


@pytest.mark.parametrize("in_background", [False, True])
def test_hang_ups_are_treated_as_by_this_process(in_background: bool) -> None:  # noqa: FBT001
    code = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN if in_background else signal.SIG_DFL)
    try:
        assert proc.run([PYTHON, "-c", code]).stdout == f"{in_background}\n"
    finally:
        signal.signal(signal.SIGHUP, former)


# What cannot be started


@pytest.mark.parametrize(
    ("text", "mode", "expected"),
    [
        ("#!/nonexistent/interpreter\n", 0o755, errno.ENOENT),
        ("echo no shebang line\n", 0o755, errno.ENOEXEC),
        ("", 0o755, errno.ENOEXEC),
        ("#!/bin/sh\n", 0o644, errno.EACCES),
        ("\x7fELF\x02\x01\x01 damaged", 0o755, errno.ENOEXEC),
    ],
)
@pytest.mark.parametrize("caller", [lambda work: work(), in_thread], ids=["main", "thread"])
def test_a_program_that_cannot_be_started_is_an_error_of_the_system(
    tmp_path: Path, text: str, mode: int, expected: int, caller: Callable[[Callable[[], CommandResult]], CommandResult]
) -> None:
    program = script(tmp_path / "program", text, mode)
    with pytest.raises(OSError, match=os.strerror(expected)) as caught:
        caller(lambda: proc.run([program], timeout_s=10))
    assert caught.value.errno == expected
    assert caught.value.filename == program


def test_a_missing_program_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        proc.run([str(tmp_path / "missing")])


def test_a_directory_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(PermissionError):
        proc.run([str(tmp_path)])


def test_a_missing_working_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        proc.run([SH, "-c", "exit"], cwd=str(tmp_path / "gone"))


def test_an_argument_that_no_program_can_have_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        proc.run([SH, "-c", "a\0b"])
    with pytest.raises(OSError, match="Argument list too long"):
        proc.run([SH, "-c", "x" * (1 << 20)])


def test_nothing_is_left_of_what_was_started_or_could_not_be(tmp_path: Path) -> None:
    broken = script(tmp_path / "broken", "no program")
    proc.run([SH, "-c", "exit"])
    before = open_files()
    for _ in range(3):
        proc.run([SH, "-c", "exit"], timeout_s=10)
        with pytest.raises(OSError, match="Exec format"):
            proc.run([broken])
        with pytest.raises(FileNotFoundError):
            proc.run([broken + "-missing"])
    assert open_files() == before
    assert not children()


# How it ends


def grandchild_script(tmp_path: Path) -> tuple[list[str], Path]:
    """A program that starts another one, writes the pids of both, and waits for it."""
    pids = tmp_path / "pids"
    return [SH, "-c", f"sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"], pids


@pytest.mark.parametrize("caller", [lambda work: work(), in_thread], ids=["main", "thread"])
def test_a_timeout_kills_the_program_and_its_children(
    tmp_path: Path, caller: Callable[[Callable[[], CommandResult]], CommandResult]
) -> None:
    argv, pids = grandchild_script(tmp_path)
    started = time.monotonic()
    result = caller(lambda: proc.run(argv, timeout_s=3))
    assert result.timed_out
    assert result.returncode == -signal.SIGKILL
    assert time.monotonic() - started < 300
    assert all(ends(int(pid)) for pid in pids.read_text().split())


def test_a_cancel_from_another_thread_kills_the_program_and_its_children(tmp_path: Path) -> None:
    argv, pids = grandchild_script(tmp_path)
    started = time.monotonic()
    result = in_thread(lambda: proc.run(argv, cancel=pids.exists))
    assert result.returncode == -signal.SIGKILL
    assert time.monotonic() - started < 300
    assert all(ends(int(pid)) for pid in pids.read_text().split())


def test_a_cancel_that_nobody_asks_for_changes_nothing() -> None:
    result = proc.run([SH, "-c", "echo here"], cancel=lambda: False)
    assert (result.returncode, result.stdout) == (0, "here\n")


def test_output_before_a_timeout_is_kept() -> None:
    result = proc.run([SH, "-c", "echo before; sleep 600"], timeout_s=3)
    assert (result.timed_out, result.stdout) == (True, "before\n")


def test_a_program_that_ends_in_time_has_not_timed_out() -> None:
    result = proc.run([SH, "-c", "sleep 0.2; exit 5"], timeout_s=30)
    assert (result.timed_out, result.returncode) == (False, 5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])  # those that wait while sh forks
def test_what_breaks_in_kills_the_program_and_its_children(tmp_path: Path, number: signal.Signals) -> None:
    class StopError(Exception):
        pass

    def stop(_number: int, _frame: object) -> None:
        raise StopError

    argv, pids = grandchild_script(tmp_path)
    former = signal.signal(number, signal.default_int_handler if number == signal.SIGINT else stop)
    watcher = threading.Thread(target=send_when, args=(pids, number))
    try:
        watcher.start()
        with pytest.raises((KeyboardInterrupt, StopError)):
            proc.run(argv, timeout_s=30)
    finally:
        watcher.join()
        signal.signal(number, former)
    assert all(ends(int(pid)) for pid in pids.read_text().split())
    assert not children()


def send_when(path: Path, number: int) -> None:
    """Send the signal to this process once `path` exists."""
    while not path.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), number)


def test_what_breaks_in_right_after_the_end_is_raised_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the process being reaped and sh noting its status."""
    reap = os.waitpid

    def interrupted(pid: int, options: int) -> tuple[int, int]:
        found = reap(pid, options)
        if options == 0 and threading.current_thread() is threading.main_thread():
            monkeypatch.undo()
            raise KeyboardInterrupt
        return found

    before = open_files()
    monkeypatch.setattr(os, "waitpid", interrupted)
    with pytest.raises(KeyboardInterrupt):
        proc.run([SH, "-c", "sleep 0.5"], timeout_s=1800)
    assert closes(before)
    assert not children()


def test_an_error_of_the_reader_kills_the_program_and_is_raised(tmp_path: Path) -> None:
    argv, pids = grandchild_script(tmp_path)
    argv[-1] = argv[-1].replace("wait", "echo said; wait")

    def refuse(line: str) -> None:
        raise ValueError(line)

    with pytest.raises(ValueError, match="said"):
        proc.run(argv, on_line=refuse, timeout_s=30)
    assert all(ends(int(pid)) for pid in pids.read_text().split())


def test_a_background_process_that_keeps_the_output_open_is_not_waited_for_long() -> None:
    started = time.monotonic()
    result = proc.run([SH, "-c", "echo said; setsid sleep 600 & echo $!"])
    assert result.stdout.startswith("said\n")
    assert time.monotonic() - started < 300
    os.kill(int(result.stdout.split()[-1]), signal.SIGKILL)


def test_a_limit_is_no_tick_that_each_call_waits_for() -> None:
    """The fastest of many calls shows it on a busy machine too: looking at a clock now and then delays every one."""
    seconds = [proc.run(["/bin/true"], timeout_s=30).seconds for _ in range(40)]
    assert min(seconds) < 0.08


def test_many_at_once_from_threads() -> None:
    with busy_threads(), ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: proc.run([SH, "-c", f"echo {n}; exit {n}"], timeout_s=1800), range(40)))
    assert [(item.returncode, item.stdout) for item in results] == [(n, f"{n}\n") for n in range(40)]
    assert not children()


def test_no_thread_stays_behind() -> None:
    before = threading.active_count()
    proc.run([SH, "-c", "exit"], timeout_s=1800)
    deadline = time.monotonic() + 1800
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


NO_WARNINGS = """
import sys, threading, warnings
from envmedic import proc
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
for _ in range(3):
    warnings.simplefilter(sys.argv[2])
    proc.run(["/bin/true"], timeout_s=10)
try:
    proc.run([sys.argv[1]], timeout_s=10)
except OSError:
    pass
proc.run(["/bin/sleep", "10"], timeout_s=0.2)
stop.set()
"""


@pytest.mark.parametrize("action", ["error", "always"])
def test_nothing_is_warned_of_with_threads_running(tmp_path: Path, action: str) -> None:
    broken = script(tmp_path / "broken", "no program")
    result = subprocess.run(
        [PYTHON, "-W", action, "-X", "dev", "-c", NO_WARNINGS, broken, action],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_other_warnings_are_left_as_they_are() -> None:
    proc.run(["/bin/true"])
    with pytest.warns(DeprecationWarning, match="another"):
        warnings.warn("another use of fork()", DeprecationWarning, stacklevel=1)
