"""``envmedic notebook --answer``, and the file that kernels load, in a Python without IPython and without envmedic."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envmedic.notebook import in_kernel
from envmedic.notebook.answer import answer
from tests.cli.support import Done, Shell
from tests.envs.nms_cuda.case import BROKEN, Case

FILES = str(Path(str(in_kernel.__file__)).parent)
ERROR = 'Traceback (most recent call last):\n  File "<cell>", line 1\nRuntimeError: operator torchvision::nms does not exist\n'
CELL = "torch.ops.torchvision.nms(1)"
TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"


def ask(user: Shell, case: Case, **given: Any) -> Done:
    question = {"schema": "envmedic.cell/1", "prefix": str(case.prefix), "python": str(case.python), "pid": os.getpid()}
    return user.envmedic("notebook", "--answer", stdin=json.dumps(question | {"text": ERROR} | given).encode())


def test_the_last_error_and_the_next_command(user: Shell, case: Case) -> None:
    told = ask(user, case, modules={"torchvision": BROKEN}).document
    assert told["text"].startswith(f"✗ torchvision {BROKEN} does not work with torch")
    last = told["text"].splitlines()[-1]
    assert last.startswith("Next: envmedic plan --log ")
    assert last.endswith(f".log -p {case.prefix}")
    assert "Shut the kernel down before the repair" in told["text"]
    assert last.removeprefix("Next: ") in told["html"]


def test_a_changed_package_comes_before_everything(user: Shell, case: Case) -> None:
    # this process is older than the environment, as a kernel is than what is installed in it
    told = ask(user, case, modules={"torchvision": "0.1"}).document["text"]
    assert f"Restart the kernel first, and run the cell again: torchvision 0.1 is loaded and {BROKEN} installed" in told


def test_a_cell_is_kept_with_its_imports_and_not_with_its_secrets(user: Shell, case: Case) -> None:
    cases = user.home / ".local/state/envmedic/cases"
    secret = ask(user, case, source=f"login('{TOKEN}')", earlier=["from huggingface_hub import login"])
    assert "The cell is not kept for `envmedic apply --last`: it holds a secret" in secret.document["text"]
    assert not cases.exists()
    kept = ask(user, case, source=CELL, earlier=["import torch, os"], seconds=2.0).document["text"]
    assert kept.splitlines()[-1] == f"Next: envmedic apply --last --no-gpu -p {case.prefix}"
    (program,) = cases.glob("*.py")
    assert program.read_text().splitlines()[1:] == ["import torch, os", CELL]
    (file,) = cases.glob("*.json")
    assert json.loads(file.read_text())["argv"] == [str(case.python), str(program)]
    assert user.envmedic("diagnose", "--last", "-p", str(case.prefix)).code == 1


def test_the_environment_that_envmedic_itself_runs_from_is_read(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(case.prefix))
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    question = {"schema": "envmedic.cell/1", "prefix": str(case.prefix), "python": str(case.python), "pid": os.getpid()}
    told = answer(json.dumps(question | {"text": ERROR}).encode()).text
    assert told.startswith(f"✗ torchvision {BROKEN} does not work with torch")
    assert "Install envmedic into an environment of its own" in told


def test_a_strange_question_is_refused_in_words(user: Shell, case: Case) -> None:
    done = ask(user, case, schema="envmedic.cell/9")
    assert (done.code, done.out) == (2, "")
    assert "`envmedic notebook` prints how" in done.err


IN_KERNEL = f"""
import sys
sys.path.append({FILES!r})
import envmedic
class Shell:
    display_pub = None
    def register_magic_function(self, function, magic_kind, magic_name):
        assert (magic_kind, magic_name) == ("line_cell", "envmedic")
        self.magic = function
    def publish(self, data):
        print(data["text/plain"])
        assert data["text/html"].startswith("<div")
shell = Shell()
shell.display_pub = shell
envmedic.load_ipython_extension(shell)
try:
    import torchvision
except Exception as error:
    sys.last_value = error
shell.magic("")
assert not any(name.startswith("envmedic.") for name in sys.modules), "nothing else of envmedic is loaded"
"""


def in_kernel_of(case: Case, user: Shell, path: str) -> subprocess.CompletedProcess[str]:
    """A kernel whose PATH is `path`, in a directory of its user's."""
    argv, variables = [str(case.python), "-c", IN_KERNEL], user.environment() | {"PATH": path}
    return subprocess.run(argv, env=variables, cwd=user.home, capture_output=True, text=True, check=True)


def test_a_kernel_without_envmedic_asks_the_program_on_its_path(user: Shell, case: Case) -> None:
    program = user.home / "bin" / "envmedic"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(user.program)} "$@"\n')
    program.chmod(0o755)
    done = in_kernel_of(case, user, f"{program.parent}:{os.environ['PATH']}")
    assert f"torchvision {BROKEN} does not work with torch" in done.stdout
    assert "there is no program envmedic on PATH of this kernel" in in_kernel_of(case, user, "/nowhere").stderr
