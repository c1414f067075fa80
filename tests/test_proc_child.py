"""Child processes under signals at the worst moments, and the order in which they are killed and reaped."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from envmedic import proc
from envmedic.proc.child import Child, deferred_signals
from envmedic.proc.plain import collect
from tests.support.forking import children
from tests.test_proc import SH, alive, busy_threads, ends, grandchild_script, open_files

Watch = Callable[[Callable[[int], None]], None]


class StopError(Exception):
    """Raised by a signal handler."""


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def raising(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal whose handler raises."""

    def stop(_number: int, _frame: object) -> None:
        raise StopError

    former = signal.signal(request.param, stop)
    yield request.param
    signal.signal(request.param, former)


@pytest.fixture
def after_fork(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Has a function called with the process ID right after the fork, before subprocess knows it."""

    def watch(then: Callable[[int], None]) -> None:
        module = vars(subprocess).get("_posixsubprocess", subprocess)  # of Python 3.10
        name = "_fork_exec" if module is subprocess else "fork_exec"
        fork = getattr(module, name)

        def forking(*arguments: object) -> int:
            pid: int = fork(*arguments)
            then(pid)
            return pid

        monkeypatch.setattr(module, name, forking)

    return watch


@pytest.mark.parametrize("beside", [nullcontext, busy_threads], ids=["alone", "beside threads"])
@pytest.mark.parametrize(
    "start",
    [
        lambda: proc.run([SH, "-c", "sleep 600"]),
        lambda: proc.ask([SH, "-c", "sleep 600"], timeout_s=300),
        lambda: _helped("import time; time.sleep(600)"),
    ],
    ids=["run", "ask", "helper"],
)
def test_a_signal_right_after_the_fork_ends_the_child(
    raising: signal.Signals, after_fork: Watch, start: Callable[[], object], beside: Callable[[], nullcontext[None]]
) -> None:
    pids: list[int] = []

    def strike(pid: int) -> None:
        pids.append(pid)
        os.kill(os.getpid(), raising)

    after_fork(strike)
    handler, before = signal.getsignal(raising), open_files()
    with beside(), pytest.raises(StopError):
        start()
    assert [alive(pid) for pid in pids] == [False]
    assert not children()
    assert open_files() == before
    assert signal.getsignal(raising) == handler


def _helped(code: str) -> proc.HelperResult:
    with closing(proc.Helper(["-c", code], b"")) as helper:
        helper.start()
        return helper.finish()


def test_a_signal_between_reaping_and_the_note_of_the_status_kills_nobody(
    raising: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    reap, killed = os.waitpid, []

    def interrupted(pid: int, options: int) -> tuple[int, int]:
        found = reap(pid, options)
        os.kill(os.getpid(), raising)
        return found

    monkeypatch.setattr(os, "waitpid", interrupted)
    monkeypatch.setattr(os, "killpg", lambda *to: killed.append(to))
    before = open_files()
    with pytest.raises(StopError):
        proc.run([SH, "-c", "exit"], timeout_s=300)
    assert killed == []
    assert not children()
    assert open_files() == before


def test_two_signals_at_once_end_the_child_and_the_handlers_are_back(after_fork: Watch) -> None:
    numbers = (signal.SIGUSR1, signal.SIGUSR2)

    def stop(number: int, _frame: object) -> None:
        raise StopError(number)

    def strike(_pid: int) -> None:
        for number in numbers:
            os.kill(os.getpid(), number)

    former = [signal.signal(number, stop) for number in numbers]
    try:
        after_fork(strike)
        with pytest.raises(StopError):
            proc.run([SH, "-c", "sleep 600"])
        assert [signal.getsignal(number) for number in numbers] == [stop, stop]
    finally:
        for number, handler in zip(numbers, former, strict=True):
            signal.signal(number, handler)
    assert not children()


def test_signals_while_the_deferral_ends_reach_their_handlers() -> None:
    """The first that is called raises; what has not been put back by then passes signals on all the same."""
    seen = []
    former = signal.signal(signal.SIGUSR1, lambda *_: seen.append("one"))
    try:
        with deferred_signals():
            os.kill(os.getpid(), signal.SIGUSR1)
            assert seen == []
            stand_in = signal.getsignal(signal.SIGUSR1)
        assert seen == ["one"]
        assert callable(stand_in)
        stand_in(signal.SIGUSR1, None)
        assert seen == ["one", "one"]
    finally:
        signal.signal(signal.SIGUSR1, former)


def test_interruptions_at_any_time_leave_nothing(raising: signal.Signals) -> None:
    """A timer strikes at moments that go through the whole of starting, hearing and reaping."""
    before, struck = open_files(), 0
    former = signal.signal(signal.SIGALRM, signal.getsignal(raising))
    try:
        for turn in range(120):
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.00005 * (turn + 1))
                    proc.run([SH, "-c", "exit"], timeout_s=300)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except StopError:
                struck += 1
            assert not children()
            assert open_files() == before
    finally:
        signal.signal(signal.SIGALRM, former)
    assert struck


def test_a_program_that_has_ended_keeps_its_group_until_it_is_reaped(tmp_path: Path) -> None:
    argv, pids = grandchild_script(tmp_path)
    argv[-1] = argv[-1].replace("wait", "exit 3")
    with closing(Child(argv)) as child:
        child.start()
        assert child.wait(300)
        left = int(pids.read_text().split()[1])
        assert alive(left)
        child.kill()
        assert ends(left)
        assert child.reap() == 3


def test_nothing_is_signalled_that_was_reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    with closing(Child([SH, "-c", "exit"])) as child:
        child.start()
        assert child.reap() == 0
        monkeypatch.setattr(os, "kill", lambda *to: sent.append(to))
        monkeypatch.setattr(os, "killpg", lambda *to: sent.append(to))
        child.kill()
        child.send(signal.SIGTERM)
    assert (sent, child.killed) == ([], False)


def test_children_that_the_kernel_reaps_by_itself() -> None:
    """Who starts envmedic may ignore SIGCHLD, which it inherits."""
    former = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        result = proc.run([SH, "-c", "echo said; exit 3"], timeout_s=300)
    finally:
        signal.signal(signal.SIGCHLD, former)
    assert (result.stdout, result.timed_out) == ("said\n", False)


def test_a_child_without_a_session_of_its_own_is_killed_alone() -> None:
    """Its process group is that of this process."""
    with closing(Child([SH, "-c", "sleep 600"], session=False)) as child:
        child.start()
        child.kill()
        assert child.reap() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("trap", "grace_s", "expected"), [("trap 'exit 4' TERM; ", 300.0, 4), ("trap '' TERM; ", 0.5, -signal.SIGKILL)]
)
def test_a_child_with_grace_may_end_by_itself(trap: str, grace_s: float, expected: int, tmp_path: Path) -> None:
    told = bytearray()
    code = f"{trap}echo ready; : >{tmp_path}/ready; while :; do sleep 0.05; done"
    with closing(Child([SH, "-c", code], limit_s=0.1, grace_s=grace_s)) as child:
        child.start()
        while not (tmp_path / "ready").exists():  # however long a busy machine takes
            time.sleep(0.01)
        assert child.listen(told.extend, told.extend)
        assert (child.reap(), bytes(told)) == (expected, b"ready\n")


def test_a_background_process_that_keeps_printing_is_not_listened_to_for_long() -> None:
    result = proc.run([SH, "-c", "setsid sh -c 'while :; do echo on; done' & echo $! >&2"])  # would never return
    os.killpg(int(result.stderr), signal.SIGKILL)
    assert result.returncode == 0


def test_a_helper_dies_with_the_thread_that_started_it(tmp_path: Path) -> None:
    """While other threads run; the kernel sends the death signal when that thread ends, not the process."""
    pid_file = tmp_path / "pid"
    code = (
        "import ctypes, os, sys, time\n"
        "ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)\n"
        f"open({str(pid_file)!r} + '.new', 'w').write(str(os.getpid()))\n"
        f"os.rename({str(pid_file)!r} + '.new', {str(pid_file)!r})\n"
        "time.sleep(600)"
    )
    helper = proc.Helper(["-c", code], b"")

    def start() -> None:
        helper.start()
        while not pid_file.exists():
            time.sleep(0.01)

    with busy_threads(), closing(helper):
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        assert ends(int(pid_file.read_text()))
        assert helper.finish().returncode == -signal.SIGKILL


def test_a_poll_that_raises_ends_a_helper() -> None:
    def stop() -> None:
        raise StopError

    before = open_files()
    with closing(proc.Helper(["-c", "import time; time.sleep(600)"], b"")) as helper:
        helper.start()
        with pytest.raises(StopError):
            helper.finish(poll=stop)
    assert not children()
    assert open_files() == before


def test_a_helper_that_does_not_read_its_request() -> None:
    with closing(proc.Helper(["-c", "import os; os.close(0); raise SystemExit(3)"], b"x" * (1 << 20))) as helper:
        helper.start()
        assert helper.finish().returncode == 3


# Plain commands, by sh


def test_a_plain_command_is_collected() -> None:
    result = collect([SH, "-c", r"cat; printf 'out\377\n'; echo err >&2; exit 3"], timeout_s=300)
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\ufffd\n", "err\n")
    assert not result.timed_out


def test_a_plain_command_has_a_limit() -> None:
    result = collect([SH, "-c", "exec sleep 600"], timeout_s=0.3)
    assert (result.timed_out, result.returncode) == (True, -signal.SIGKILL)


def test_a_plain_command_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot be started"):
        collect([str(tmp_path / "missing")], timeout_s=300)


@pytest.mark.parametrize("content", ["", "no shebang line\n", "#!/nonexistent/interpreter\n", "\x7fELF damaged"])
def test_a_plain_program_that_the_system_refuses_leaves_nothing(tmp_path: Path, content: str) -> None:
    program = tmp_path / "program"
    program.write_text(content)
    program.chmod(0o755)
    before = open_files()
    with pytest.raises(OSError, match=r"Exec format error|No such file"):
        collect([str(program)], timeout_s=300)
    assert open_files() == before
    assert not children()


def test_an_interruption_kills_a_plain_command(raising: signal.Signals, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def send() -> None:
        while not pid_file.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), raising)

    sender = threading.Thread(target=send)
    sender.start()
    with pytest.raises(StopError):
        collect([SH, "-c", f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 600"], timeout_s=300)
    sender.join()
    assert ends(int(pid_file.read_text()))


def test_plain_commands_from_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda n: collect([SH, "-c", f"exit {n}"], timeout_s=60), range(8)))
    assert [item.returncode for item in results] == list(range(8))
