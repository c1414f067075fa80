"""The static readers against the truth of a real torch: its own answers and the run-time loader."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from envmedic.model.facts import Environment
from envmedic.probe.environment import observe_environment

PREFIX = os.environ.get("ENVMEDIC_TEST_REAL_PREFIX", "")
pytestmark = [
    pytest.mark.real_torch,
    pytest.mark.skipif(not PREFIX, reason="ENVMEDIC_TEST_REAL_PREFIX names no environment with torch"),
]
_QUESTION = """
import ctypes, json, os, sys, torch
def loads(path):
    pid = os.fork()
    if pid == 0:
        try:
            ctypes.CDLL(path)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0
print(json.dumps({
    "version": torch.__version__, "cuda": torch.version.cuda,
    "flags": torch._C._cuda_getArchFlags() if torch.version.cuda else "",
    "loads": {path: loads(path) for path in sys.argv[1:]},
}))
"""


@pytest.fixture(scope="module")
def observed() -> Environment:
    return observe_environment(Path(PREFIX))


@pytest.fixture(scope="module")
def truth(observed: Environment) -> dict[str, Any]:
    """What torch and the loader say, asked in a process of the environment."""
    paths = [str(Path(PREFIX, item.path)) for item in observed.libraries if item.distribution == "torchvision"]
    command = [observed.interpreter.path, "-B", "-c", _QUESTION, *paths]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


def test_version_and_cuda_are_what_torch_says(observed: Environment, truth: dict[str, Any]) -> None:
    assert observed.torch is not None
    assert (observed.torch.version, observed.torch.cuda) == (truth["version"], truth["cuda"])


def test_architectures_are_those_that_torch_was_built_for(observed: Environment, truth: dict[str, Any]) -> None:
    assert observed.torch is not None
    flags = truth["flags"].split()
    machine_code = [flag.removeprefix("sm_") for flag in flags if flag.startswith("sm_")]
    assert [item.replace(".", "") for item in observed.torch.arch_list] == machine_code
    assert [item.replace(".", "") for item in observed.torch.ptx_list] == [
        flag.removeprefix("compute_") for flag in flags if flag.startswith("compute_")
    ]


def test_load_checks_agree_with_the_loader(observed: Environment, truth: dict[str, Any]) -> None:
    checked = {
        str(Path(PREFIX, item.path)): not item.missing and not item.unresolved_count and item.error is None
        for item in observed.libraries
        if item.distribution == "torchvision"
    }
    assert checked
    assert checked == truth["loads"]


def test_every_symbol_of_torch_itself_is_found(observed: Environment) -> None:
    torch = [item for item in observed.libraries if item.distribution == "torch"]
    assert torch
    assert [(item.missing, item.unresolved_count, item.error) for item in torch] == [((), 0, None)] * len(torch)
