"""Ctrl-C at every stage, two at once, kill -9, and environments in use."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.support import LIMIT_S, REPAIR, Done, Shell, failure, lines_of, state_of, torchvision
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case
from tests.support.index import Fault, serve

pytestmark = pytest.mark.long

EVENTS = ("--events", "--json")
BEFORE = ("probe", "resolve", "fetch", "clone", "steps", "verify")


def signalled(user: Shell, case: Case, stage: str, number: signal.Signals) -> Done:
    """Apply, and send a signal when `stage` starts."""
    with user.running(*REPAIR, *EVENTS, "-p", str(case.prefix)) as process:
        told = []
        for line in lines_of(process.stderr):
            told.append(line)
            if json.loads(line)["data"] == {"type": "stage-started", "stage": stage}:
                process.send_signal(number)
                break
        out, rest = process.communicate(timeout=LIMIT_S)
    return Done(process.returncode, out.decode(), "".join(told) + rest.decode())


def orphans(case: Case) -> list[str]:
    """Command lines of processes that still work on the case's environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(os.fsencode(case.prefix) in word for word in words):
            found.append(b" ".join(words).decode(errors="replace"))
    return found


@pytest.mark.parametrize("stage", BEFORE)
def test_ctrl_c_before_the_exchange_changes_nothing(user: Shell, case: Case, stage: str) -> None:
    before = state_of(case.prefix)
    done = signalled(user, case, stage, signal.SIGINT)
    assert done.code == 130, done.told()
    assert done.document["environment"] == "unchanged"
    assert (done.document.get("failure") or done.document)["code"] == "interrupted"
    assert state_of(case.prefix) == before
    assert not list(case.prefix.parent.glob(".envmedic/*/env"))
    assert orphans(case) == []


def test_ctrl_c_after_the_exchange_lets_the_repair_finish_and_says_so(user: Shell, case: Case) -> None:
    done = signalled(user, case, "smoke", signal.SIGINT)
    assert done.code == 0, done.told()
    assert done.document["environment"] == "repaired"
    assert "too-late-to-stop" in done.err
    assert torchvision(case.prefix) == REPAIRED


def test_ctrl_c_while_an_index_does_not_answer(user: Shell, case: Case) -> None:
    before = state_of(case.prefix)
    with serve(case.wheels.parent / "index") as server:
        server.faults.append(Fault(pattern="", hang=True))
        with user.having(PIP_INDEX_URL=server.url).running(*REPAIR, "-p", str(case.prefix)) as process:
            deadline = time.monotonic() + LIMIT_S
            while not server.seen:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LIMIT_S)
    done = Done(process.returncode, out.decode(), err.decode())
    failure(done, code=130, kind="interrupted", says="Interrupted", hint=False)
    assert orphans(case) == []
    assert state_of(case.prefix) == before


@pytest.mark.parametrize("stage", ["steps", "smoke"])
def test_after_kill_9_the_next_command_that_changes_settles_it(user: Shell, case: Case, stage: str) -> None:
    before = state_of(case.prefix)
    done = signalled(user, case, stage, signal.SIGKILL)
    assert done.code == -signal.SIGKILL
    changing = user.envmedic("prune", "--yes", "--keep", "1", "--json", "-p", str(case.prefix))
    assert changing.code == 0, changing.told()
    assert "recovered the interrupted transaction" in changing.err
    following = user.envmedic("history", "--json", "-p", str(case.prefix))
    assert following.code == 0, following.told()
    assert "recover" not in following.err
    live = stage == "smoke"
    assert [item["live"] for item in following.document["generations"]] == [live]
    assert torchvision(case.prefix) == (REPAIRED if live else BROKEN)
    if not live:
        assert state_of(case.prefix) == before
    again = user.envmedic("recover", "--json", "-p", str(case.prefix))
    assert (again.code, again.document["settled"]) == (0, [])


def test_recover_by_hand_after_kill_9(user: Shell, case: Case) -> None:
    before = state_of(case.prefix)
    signalled(user, case, "verify", signal.SIGKILL)
    done = user.envmedic("recover", "--json", "-p", str(case.prefix))
    assert (done.code, done.document["schema"]) == (0, "envmedic.recovery/1"), done.told()
    assert [item["environment"] for item in done.document["settled"]] == ["unchanged"]
    assert state_of(case.prefix) == before


def test_a_second_envmedic_on_the_same_environment(user: Shell, case: Case) -> None:
    with user.running(*REPAIR, *EVENTS, "-p", str(case.prefix)) as first:
        for line in lines_of(first.stderr):
            if '"clone"' in line:
                first.send_signal(signal.SIGSTOP)
                break
        try:
            second = user.envmedic(*REPAIR, "--json", "-p", str(case.prefix))
        finally:
            first.send_signal(signal.SIGCONT)
        out, err = first.communicate(timeout=LIMIT_S)
    assert first.returncode == 0, err.decode()
    assert json.loads(out)["environment"] == "repaired"
    failure(second, code=6, kind="busy", says="Another envmedic works on")
    assert f"Process {first.pid} holds" in second.err


def test_an_environment_in_use(user: Shell, case: Case) -> None:
    before = state_of(case.prefix)
    command = [str(case.python), "-c", "print(1, flush=True); import time; time.sleep(600)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        try:
            done = user.envmedic(*REPAIR, "--json", "-p", str(case.prefix))
            allowed = user.envmedic(*REPAIR, "--json", "--allow", "in-use", "-p", str(case.prefix))
        finally:
            program.kill()
    failure(done, code=6, kind="busy", says="is in use by 1 running process")
    assert any(line.startswith(f"{program.pid} ") for line in done.document["details"])
    assert "--allow in-use" in done.document["hint"]
    assert allowed.code == 0, allowed.told()
    assert before != state_of(case.prefix)
