"""Work in a fork: it is done there, comes back, and is done here wherever that fails."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

SEVERAL_CORES = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core, and nothing is forked")
BEGINNING = """
import os, signal, sys, threading, time
from envmedic.forked import begun, spread
here = os.getpid()
def beside(work, rest):
    with begun(work) as fork:
        other = rest()
        return fork.value(), other
def children():
    return open(f"/proc/self/task/{threading.get_native_id()}/children").read().split()
"""


def said(code: str, before: str = "") -> str:
    """What `code` prints in a process of its own, which has one thread: nothing else may be heard."""
    argv = [sys.executable, "-c", BEGINNING + before + textwrap.dedent(code)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=1800)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@SEVERAL_CORES
def test_work_is_done_in_another_process_and_its_result_comes_back() -> None:
    code = """
    (pid, text), rest = beside(lambda: (os.getpid(), "x" * 3_000_000), os.getpid)
    print(pid != here, rest == here, len(text), children())
    """
    assert said(code) == "True True 3000000 []"


def test_what_goes_wrong_there_is_raised_here() -> None:
    code = """
    def work():
        raise KeyError(os.getpid())
    try:
        beside(work, lambda: None)
    except KeyError as error:
        print(error.args[0] == here, children())
    """
    assert said(code) == "True []"


@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), signal.SIGKILL)", "sys.exit(0)", "os._exit(0)", "os._exit(3)", "os.close(4)"]
)
def test_a_fork_that_ends_or_fails_otherwise_is_of_no_consequence(end: str) -> None:
    code = f"""
    def work():
        if os.getpid() != here:
            {end}
        return os.getpid()
    print(beside(work, lambda: None)[0] == here, children())
    """
    assert said(code) == "True []"


def test_a_result_that_cannot_be_packed_is_made_here() -> None:
    code = """
    made, _ = beside(lambda: (threading.Lock(), os.getpid()), lambda: None)
    print(made[1] == here, children())
    """
    assert said(code) == "True []"


def test_a_fork_that_is_not_waited_for_is_ended() -> None:
    code = """
    opened = os.listdir("/proc/self/fd")
    try:
        beside(lambda: time.sleep(1000), lambda: 1 / 0)
    except ZeroDivisionError:
        print(children(), os.listdir("/proc/self/fd") == opened)
    """
    assert said(code) == "[] True"


def test_an_interrupt_ends_it() -> None:
    code = """
    def interrupt():
        raise KeyboardInterrupt
    try:
        beside(lambda: time.sleep(1000), interrupt)
    except KeyboardInterrupt:
        print(children())
    """
    assert said(code) == "[]"


def test_nothing_is_forked_beside_other_threads() -> None:
    code = """
    done = threading.Event()
    threading.Thread(target=done.wait).start()
    print(beside(os.getpid, lambda: None)[0] == here)
    done.set()
    """
    assert said(code) == "True"


def test_nothing_is_forked_beside_threads_that_python_does_not_know() -> None:
    """Those of a compiled library, of which `threading` counts none."""
    code = """
    import _thread
    _thread.start_new_thread(time.sleep, (1000,))
    print(threading.active_count(), beside(os.getpid, lambda: None)[0] == here)
    """
    assert said(code) == "1 True"


@SEVERAL_CORES
def test_a_fork_that_hangs_is_ended_and_its_work_done_here() -> None:
    code = """
    from envmedic import forked
    forked._LEAST_WAIT_S = 0.2
    opened = os.listdir("/proc/self/fd")
    def work():
        if os.getpid() != here:
            time.sleep(1000)
        return os.getpid()
    print(beside(work, lambda: None)[0] == here, children(), os.listdir("/proc/self/fd") == opened)
    """
    assert said(code) == "True [] True"


@SEVERAL_CORES
@pytest.mark.parametrize("cut", [4, 9, 2_000_000])
def test_an_answer_that_is_cut_short_is_none(cut: int) -> None:
    code = f"""
    write, written = os.write, 0
    def cut_short(number, data):
        global written
        if os.getpid() == here or number < 3:
            return write(number, data)
        if written >= {cut}:
            os._exit(0)
        written += (now := write(number, data[:{cut} - written]))
        return now
    os.write = cut_short
    print(beside(lambda: (os.getpid(), "x" * 3_000_000), lambda: None)[0][0] == here, children())
    """
    assert said(code) == "True []"


@SEVERAL_CORES
def test_a_fork_answers_where_the_end_of_children_is_ignored() -> None:
    """Under a parent that ignores SIGCHLD the kernel reaps the fork, and its status is lost."""
    code = """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    def fail():
        raise KeyError
    print(beside(os.getpid, lambda: None)[0] != here, beside(lambda: fail() if os.getpid() != here else 1, int))
    """
    assert said(code) == "True (1, 0)"


def test_nothing_is_forked_where_there_is_one_core() -> None:
    code = """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(beside(os.getpid, lambda: None)[0] == here)
    """
    assert said(code) == "True"


def test_work_is_done_here_where_no_process_can_be_had() -> None:
    code = """
    def refuse():
        raise BlockingIOError
    os.fork = refuse
    opened = os.listdir("/proc/self/fd")
    print(beside(os.getpid, lambda: None)[0] == here, os.listdir("/proc/self/fd") == opened)
    """
    assert said(code) == "True True"


INTERRUPTED = """
import os, signal
from envmedic.forked import begun, spread
from envmedic.proc import run
def beside(work, rest):
    with begun(work) as fork:
        other = rest()
        return fork.value(), other

done = []

def after():
    os.kill(os.getpid(), signal.SIGINT)
    done.append("after")

os.register_at_fork(after_in_parent=after)
try:
    {begin}
except KeyboardInterrupt:
    done.append("interrupted")
print(*done)
"""


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        pytest.param("beside(lambda: 1, lambda: None)", "after interrupted", marks=SEVERAL_CORES),
        ('run(["/bin/true"])', ""),  # subprocess calls nothing around its fork
    ],
    ids=["forked", "run"],
)
def test_an_interruption_waits_until_what_follows_a_fork_is_done(begin: str, expected: str) -> None:
    """logging gives its lock back there: what is raised within is swallowed, and the lock is never given back."""
    program = [sys.executable, "-c", INTERRUPTED.format(begin=begin)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert " ".join(done.stdout.split()) == expected


@SEVERAL_CORES
def test_spread_work_comes_back_in_order_from_several_processes() -> None:
    code = """
    found = spread(lambda number: (number, os.getpid()), 60, most=4)
    print([number for number, _ in found] == list(range(60)), len({pid for _, pid in found}) > 1, children())
    """
    assert said(code) == "True True []"


@SEVERAL_CORES
def test_spread_work_that_a_fork_did_not_finish_is_done_here() -> None:
    code = """
    def work(number):
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return number, os.getpid()
    print(spread(work, 30, most=4) == [(number, here) for number in range(30)], children())
    """
    assert said(code) == "True []"


@pytest.mark.parametrize("count", [0, 1, 2, 3, 25_000])
def test_spread_of_none_or_of_very_many(count: int) -> None:
    code = f"print(spread(lambda number: number * 2, {count}, most=3) == list(range(0, 2 * {count}, 2)), children())"
    assert said(code) == "True []"


def test_what_spread_work_raises_is_raised_and_ends_the_forks() -> None:
    code = """
    def work(number):
        if number == 7:
            raise KeyError(number)
        return number
    try:
        spread(work, 30, most=4)
    except KeyError as error:
        print(error.args[0], children())
    """
    assert said(code) == "7 []"
