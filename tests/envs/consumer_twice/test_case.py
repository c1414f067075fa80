"""Of two CUDA plugins of JAX the one that its partners and libraries suit stays; the other one goes with its runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import consumers
from tests.support.repairs import Changes, prove_repair

pytestmark = pytest.mark.long

PROGRAM = """\
import importlib.util

if importlib.util.find_spec("jax_cuda13_plugin"):
    raise SystemExit("Unable to initialize backend 'cuda': ALREADY_EXISTS: PJRT_Api already exists for device type cuda")
print("one plugin")
"""


def test_the_one_of_the_libraries_here_stays(tmp_path: Path) -> None:
    directory = tmp_path / "wheels"
    wheels = [*consumers.jax(directory, "0.6.2", cuda=("12", "13")), consumers.cudnn(directory, "9.8.0")]
    pins = [item.requirement for item in wheels]
    case = consumers.build(tmp_path, wheels, pins, PROGRAM)
    gone: Changes = [("jax-cuda13-pjrt", "0.6.2", None), ("jax-cuda13-plugin", "0.6.2", None)]
    prove_repair(case, "consumer-twice", [*gone, ("jax-cuda12-plugin", "0.6.2", "0.6.2")], "one plugin\n")
