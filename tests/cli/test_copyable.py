"""Every command that is printed as the next one runs as it is pasted, about the same environment."""

from __future__ import annotations

import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envmedic.render.next_command import aimed
from tests.cli.support import REPAIR, ROOT, SAMPLES, Done, Shell, torchvision
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case
from tests.support import forking

Run = Callable[[str], Done]
LINE = re.compile(r"^(?:[A-Z][^:`]*: |  )?((?:envmedic|uv) [a-z].*)$", re.MULTILINE)
QUOTED = re.compile(r"`(envmedic [a-z]+ [^`]*)`")


def commands(done: Done) -> list[str]:
    """The command lines in what was printed, those in sentences among them."""
    text = f"{done.out}\n{done.err}"
    return [found for found in [*LINE.findall(text), *QUOTED.findall(text)] if "CMD" not in found]


@pytest.fixture
def pasted(user: Shell, case: Case, tmp_path: Path) -> Run:
    """Runs a line as a shell does to which it is pasted, in which no environment is active."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "envmedic"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m envmedic "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    path = f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin"
    shell = user.having(ENVMEDIC_YES="1", PATH=path, PYTHONPATH=str(ROOT), **case.index_variables())

    def run(line: str) -> Done:
        code, out, err = forking.run_process(["/bin/sh", "-c", line], shell.environment(), tmp_path)
        return Done(code, out.decode(), err.decode())

    return run


def test_a_whole_story_by_pasting_what_comes_next(user: Shell, case: Case, pasted: Run) -> None:
    log = SAMPLES / "sample_operator_does_not_exist.log"
    told = user.envmedic("diagnose", str(log), "-p", str(case.prefix))
    plan = next(line for line in commands(told) if line.startswith("envmedic plan "))
    assert f"--log {log}" in plan
    planned = pasted(plan)
    assert planned.code == 0, planned.told()
    apply = next(line for line in commands(planned) if line.startswith("envmedic apply "))
    assert f"--log {log}" in apply
    applied = pasted(apply)
    assert (applied.code, torchvision(case.prefix)) == (0, REPAIRED), applied.told()
    undone = pasted(next(line for line in commands(applied) if line.startswith("envmedic undo ")))
    assert (undone.code, torchvision(case.prefix)) == (0, BROKEN), undone.told()
    redone = pasted(next(line for line in commands(undone) if line.startswith("envmedic redo ")))
    assert (redone.code, torchvision(case.prefix)) == (0, REPAIRED), redone.told()


def test_commands_in_hints_and_answers_are_about_the_same_environment(user: Shell, case: Case, pasted: Run) -> None:
    shell = user.having(**case.index_variables())
    target = ("-p", str(case.prefix))
    flows = [
        shell.envmedic("undo", "--yes", *target),
        shell.envmedic("verify", "--no-gpu", "--check", "torchvision-nms", *target),
        shell.envmedic("check", f"torchvision=={REPAIRED}", *target),
        shell.envmedic("explain", "no-such-fault"),
        shell.envmedic(*REPAIR, *target),
        shell.envmedic("history", *target),
        shell.envmedic("pip", *target, "install", "six"),
    ]
    # after a program that has failed: `run` before it is a line to fill in
    lines = [line for done in flows for line in commands(done) if "apply --last" not in line]
    assert any(line.startswith("uv pip install --python ") for line in lines)
    assert any(line.startswith("envmedic history ") for line in lines)
    for line in lines:
        assert str(case.prefix) in line or line.startswith(("envmedic explain", "envmedic playbooks")), line
        done = pasted(line)
        assert done.code in {0, 1}, f"{line}\n{done.told()}"


def test_only_a_command_without_an_environment_gets_one() -> None:
    target = ("-p", "/my env")
    assert aimed("See `envmedic history`", target) == "See `envmedic history -p '/my env'`"
    assert aimed("`envmedic guard -- pip install x`", target) == "`envmedic guard -p '/my env' -- pip install x`"
    assert aimed("`envmedic uv pip install x`", target) == "`envmedic uv -p '/my env' pip install x`"
    for text in (
        "`envmedic undo -p /x`",
        "`envmedic conda install`",
        "`envmedic explain y`",
        "`envmedic run -- x`",
        "envmedic history",
    ):
        assert aimed(text, target) == text
    assert aimed("`envmedic history`", ()) == "`envmedic history`"
