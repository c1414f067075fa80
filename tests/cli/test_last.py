"""``run`` keeps a failure, and ``apply --last`` lets the program that failed decide on the repair."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envmedic.model.program import Case as KeptCase
from tests.cli.support import Done, Shell, failure, state_of, torchvision
from tests.envs.nms_cuda.case import REPAIRED, Case
from tests.support import forking

MESSAGE = "operator torchvision::nms does not exist"
FAILING = """\
import json, os, subprocess, sys, time, traceback
import torch
import torchvision

open("here.txt").close()
boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]])
torchvision.ops.nms(boxes, torch.tensor([0.9, 0.8]), 0.5)
"""
TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"


def kept(user: Shell) -> list[Path]:
    return sorted((user.home / ".local/state/envmedic/cases").glob("*"))


def fails(user: Shell, case: Case, then: str, *, before: str = "") -> Done:
    """Run the program that fails by the broken environment and does `then` in a repaired one, where it was written."""
    (case.project / "here.txt").write_text("")
    (case.project / "train.py").write_text(f"{before}\n{FAILING}\n{then}\n")
    argv = [*user.program, "run", "--", str(case.python), "-B", "train.py"]
    code, out, err = forking.run_process(argv, user.environment(), case.project)
    done = Done(code, out.decode(), err.decode())
    assert done.code == 1, done.told()
    return done


def apply(user: Shell, case: Case, *arguments: str) -> Done:
    words = ("apply", "--last", "--json", "--yes", "--no-gpu", "-p", str(case.prefix), *arguments)
    return user.envmedic(*words)


def outcome(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    return next(item for item in outcomes if item["check"].startswith("command "))


def test_a_failure_is_kept_for_its_user_alone(user: Shell, case: Case) -> None:
    secretive = user.having(HF_TOKEN=TOKEN, CUDA_VISIBLE_DEVICES="", LD_LIBRARY_PATH="/opt/mine", EDITOR="vi")
    done = fails(secretive, case, "", before=f"print('token={TOKEN}')")
    # without a GPU the command says that it is to go without that proof
    assert done.err.splitlines()[-1].replace(" --no-gpu", "") == f"Next: envmedic apply --last -p {case.prefix}"
    (path,) = kept(user)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    found = msgspec.json.decode(path.read_bytes(), type=KeptCase)
    assert found.argv == (str(case.python), "-B", "train.py")
    assert (found.directory, found.prefix) == (str(case.project), str(case.prefix))
    assert f"RuntimeError: {MESSAGE}" in found.text
    assert found.variables["LD_LIBRARY_PATH"] == "/opt/mine"
    assert "EDITOR" not in found.variables
    assert TOKEN not in path.read_text()
    fails(user, case, "")
    assert kept(user) == [path], "the latest replaces the one before"


def test_a_program_that_works_leaves_no_case(user: Shell, case: Case) -> None:
    assert user.envmedic("run", "-p", str(case.prefix), "--", "true").code == 0
    assert not kept(user)


@pytest.mark.parametrize("staging", ["namespace", "relocate"])
def test_the_program_that_failed_decides(user: Shell, case: Case, staging: str) -> None:
    fails(user, case, f"print(sys.prefix); open({str(case.project / 'seen.txt')!r}, 'a').write(sys.prefix + '\\n')")
    shown = user.envmedic("plan", "--last", "-p", str(case.prefix))
    assert f"runs in {case.project}, with the clone" in shown.out
    assert shown.out.splitlines()[-1].strip().replace(" --no-gpu", "") == f"envmedic apply --last -p {case.prefix}"
    said = user.envmedic("diagnose", "--last", "-p", str(case.prefix))
    assert said.out.splitlines()[-1] == f"Next: envmedic plan --last -p {case.prefix}"
    told = user.envmedic("diagnose", "--last", "--json", "-p", str(case.prefix))
    assert (told.code, told.document["findings"][0]["playbook"]) == (1, "nms-cuda")
    done = apply(user, case, "--staging", staging)
    assert done.code == 0, done.told()
    record = done.document
    assert (record["program"], record["outcome"]) == ("passed", "repaired")
    assert (outcome(record["checks_before"])["status"], outcome(record["checks_after"])["status"]) == ("fail", "pass")
    # in a copy the interpreter stands elsewhere, and the path on the command line follows it
    seen = set((case.project / "seen.txt").read_text().splitlines())
    assert (seen == {str(case.prefix)}) is (record["staging"] == "namespace")
    assert torchvision(case.prefix) == REPAIRED


@pytest.mark.long
def test_past_the_point_it_has_passed_and_is_stopped_with_its_children(user: Shell, case: Case) -> None:
    # the child leaves the session and the process group of the program
    child = "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()} '); time.sleep(3600)"
    marks = case.project / "pids.txt"
    fails(
        user,
        case,
        f"subprocess.Popen([sys.executable, '-c', {child!r}, {str(marks)!r}], start_new_session=True)\n"
        f"while not os.path.exists({str(marks)!r}): time.sleep(0.01)\n"
        "print('training', flush=True); time.sleep(3600)",
    )
    done = apply(user, case, "--pass-after", "10", "--staging", "relocate")
    assert done.code == 0, done.told()
    assert done.document["program"] == "passed the point"
    assert "no reported error within 10 s, then stopped" in outcome(done.document["checks_after"])["reason"]
    assert marks.exists(), done.told()
    assert not running(str(marks))
    assert torchvision(case.prefix) == REPAIRED


def running(word: str) -> list[str]:
    """Processes with `word` on their command line."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words and place.parent.name != str(os.getpid()):
            found.append(place.parent.name)
    return found


def test_what_is_no_fault_of_an_environment_decides_nothing(user: Shell, case: Case) -> None:
    fails(user, case, "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB.')")
    done = apply(user, case)
    assert done.code == 0, done.told()
    record = done.document
    assert (record["program"], record["outcome"]) == ("failed elsewhere", "repaired")
    ended = outcome(record["checks_after"])
    assert (ended["status"], ended["applicable"]) == ("skip", False)
    assert "ran out of memory" in ended["reason"]


@pytest.mark.long
def test_the_reported_error_again_is_no_repair(user: Shell, case: Case) -> None:
    before = state_of(case.prefix)
    fails(user, case, f"raise RuntimeError({MESSAGE!r})")
    done = apply(user, case)
    assert done.code == 4, done.told()
    record = done.document
    assert (record["program"], record["environment"]) == ("failed", "unchanged")
    assert "the reported error again" in outcome(record["checks_after"])["reason"]
    assert state_of(case.prefix) == before


@pytest.mark.long
def test_the_reported_error_in_a_program_that_goes_on_is_no_repair(user: Shell, case: Case) -> None:
    before = state_of(case.prefix)
    again = f"try:\n    raise RuntimeError({MESSAGE!r})\nexcept RuntimeError:\n    traceback.print_exc()\n"
    fails(user, case, f"{again}time.sleep(3600)")
    done = apply(user, case, "--pass-after", "10")
    assert done.code == 4, done.told()
    assert done.document["program"] == "failed"
    assert state_of(case.prefix) == before


def test_what_is_asked_of_it_must_make_sense(user: Shell, case: Case) -> None:
    target = ("--json", "-p", str(case.prefix))
    failure(user.envmedic("plan", "--last", *target), code=2, kind="input", says="No failure of a program")
    failure(user.envmedic("diagnose", "--last", *target), code=2, kind="input", says="No failure of a program")
    failure(
        user.envmedic("plan", "--pass-after", "5", *target), code=2, kind="input", says="about the program of --last"
    )
    failure(user.envmedic("plan", "--last", "--log", "x", *target), code=2, kind="input", says="a text and a command")
    fails(user, case, "")
    failure(user.envmedic("plan", "--last", "--pass-after", "0.001", *target), code=2, kind="input", says="before")
    (path,) = kept(user)
    path.write_text(json.dumps({"prefix": 1}))
    failure(user.envmedic("plan", "--last", *target), code=2, kind="input", says="not a valid Case")


def test_where_nothing_can_be_kept_the_failure_is_diagnosed_all_the_same(user: Shell, case: Case) -> None:
    (user.home / ".local").write_text("in the way")
    done = fails(user, case, "")
    assert "is not kept for `envmedic apply --last`" in done.err
    assert "nms-cuda" in done.err


def test_a_repair_without_the_program_says_so_and_how_to_run_it(user: Shell, case: Case) -> None:
    done = user.envmedic("apply", "--playbook", "nms-cuda", "--yes", "--no-gpu", "-p", str(case.prefix))
    assert done.code == 0, done.told()
    assert "your program was not run" in done.out
    lines = [line.strip() for line in done.out.splitlines()]
    at = lines.index(f"envmedic run -p {case.prefix} -- CMD")
    assert lines[at + 1] == f"envmedic apply --last -p {case.prefix}"
