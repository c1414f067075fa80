"""A JAX for the CPU gets the CUDA plugin of its own release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import consumers
from tests.support.native_case import NativeCase
from tests.support.repairs import found_by_facts

pytestmark = pytest.mark.long

PROGRAM = """\
import importlib.util

if not importlib.util.find_spec("jax_cuda12_plugin"):
    raise SystemExit(
        "WARNING:jax._src.xla_bridge:811: An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not "
        "installed. Falling back to cpu."
    )
print("on the GPU")
"""


def build(room: Path) -> NativeCase:
    directory = room / "wheels"
    wheels = [
        *consumers.jax(directory, "0.6.0"),
        *consumers.jax(directory, "0.6.2"),
        consumers.cudnn(directory, "9.8.0"),
    ]
    return consumers.build(room, wheels, ["jax==0.6.0", "jaxlib==0.6.0"], PROGRAM)


def test_the_plugin_of_its_release_comes(tmp_path: Path) -> None:
    case = build(tmp_path)
    assert found_by_facts(case).verdict == "healthy", "nobody has missed the GPU yet"
    done = case.apply("--log", str(case.log()))
    assert done.code == 0, done.told()
    plan = done.document["plan"]
    assert plan["playbook"] == "consumer-cpu-build"
    new = {(item["name"], item["after"]) for item in plan["changes"] if item["before"] is None}
    assert new == {("jax-cuda12-plugin", "0.6.0"), ("jax-cuda12-pjrt", "0.6.0"), ("nvidia-cudnn-cu12", "9.8.0")}
    assert case.run().out == "on the GPU\n"
