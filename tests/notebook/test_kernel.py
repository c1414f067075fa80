"""The magics in a real kernel of a broken environment, and in IPython in a terminal: ``make test-notebook``."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import ROOT, Shell, user_of
from tests.envs.nms_cuda.case import BROKEN, REPAIRED, Case, build
from tests.support.venvs import uv

pytestmark = pytest.mark.notebook
TOOLS = ROOT / "build" / "notebook-tools" / "bin" / "python"
FAILING = "import torchvision\nprint(torchvision.ops.nms(torch.tensor([[0.0, 0.0, 10.0, 10.0]]), torch.tensor([0.9]), 0.5).tolist())"


@pytest.fixture
def broken(tmp_path: Path) -> tuple[Case, Shell]:
    """A broken environment with ipykernel, and its user, who has envmedic on PATH and not in that environment."""
    case = build(tmp_path / "case")
    install = [uv(), "pip", "install", "--quiet", "--python", str(case.python), "ipykernel"]
    subprocess.run(install, check=True)
    user = user_of(case, tmp_path / "home")
    program = user.home / "bin" / "envmedic"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.join(user.program)} "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{user.environment()['PATH']}"
    return case, user.having(PATH=path, PYTHONDONTWRITEBYTECODE="")


def run_cells(broken: tuple[Case, Shell], *cells: str) -> list[list[dict[str, Any]]]:
    """The outputs of each cell, those after the lines that load the extension."""
    case, user = broken
    asked = {"python": str(case.python), "cells": [user.envmedic("notebook").out, *cells]}
    argv, given = [str(TOOLS), str(Path(__file__).with_name("run_cells.py"))], json.dumps(asked)
    done = subprocess.run(
        argv, input=given, env=user.environment(), cwd=user.home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded, *outputs = json.loads(done.stdout)
    assert not loaded
    return list(outputs)


def test_a_cell_that_fails_is_diagnosed_and_kept_and_decides_on_the_repair(broken: tuple[Case, Shell]) -> None:
    case, user = broken
    apply = ["apply", "--last", "--yes", "--no-gpu", "-p", str(case.prefix)]
    while_it_runs = f"!envmedic {shlex.join(apply)} 2>&1; echo code $?"
    before, _, told, kept, busy = run_cells(
        broken, "import torch", FAILING, "%envmedic", f"%%envmedic\n{FAILING}", while_it_runs
    )
    assert not before
    (shown,) = told
    assert set(shown["data"]) == {"text/plain", "text/html"}
    assert f"torchvision {BROKEN} does not work with torch" in shown["data"]["text/plain"]
    assert "Next: envmedic plan --log " in shown["data"]["text/plain"]
    error, shown, end = kept
    assert "torchvision::nms does not exist" in error["evalue"]
    assert (
        shown["data"]["text/plain"].splitlines()[-1]
        == f"Next: envmedic {shlex.join(['apply', '--last', '--no-gpu', '-p', str(case.prefix)])}"
    )
    assert (end["output_type"], end["ename"]) == ("error", "CellFailed"), "a notebook that is run as a whole ends here"
    # what the kernel is told to be shut down for
    assert "code 6" in busy[-1]["text"]
    done = user.envmedic(*apply)
    assert done.code == 0, done.told()
    assert "Program      passed" in done.out
    (works,) = run_cells(broken, f"%%envmedic\nimport torch\n{FAILING}\ntorchvision.__version__")
    assert [item["output_type"] for item in works] == ["stream", "execute_result"]
    assert REPAIRED in works[1]["data"]["text/plain"]


def test_in_a_terminal_the_finding_is_text(broken: tuple[Case, Shell]) -> None:
    case, user = broken
    typed = f"{user.envmedic('notebook').out}import torchvision\n%envmedic\n"
    done = subprocess.run(
        [str(case.python), "-m", "IPython", "--simple-prompt", "--no-banner"],
        input=typed, env=user.environment(), cwd=user.home, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"torchvision {BROKEN} does not work with torch" in done.stdout, done.stderr
    assert "<div" not in done.stdout
