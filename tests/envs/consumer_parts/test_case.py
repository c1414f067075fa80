"""The plugin comes in the release of JAX, with its runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import consumers
from tests.support.native_case import NativeCase
from tests.support.repairs import found_by_facts, prove_repair

pytestmark = pytest.mark.long

PROGRAM = """\
import warnings
from jaxlib import version
from jax_cuda12_plugin import version as own

if own.__version__ != version.__version__:
    raise SystemExit(
        f"RuntimeWarning: JAX plugin jax_cuda12_plugin version {own.__version__} is installed, but it is not compatible "
        f"with the installed jaxlib version {version.__version__}, so it will not be used."
    )
print("on the GPU")
"""


def build(room: Path, own: str) -> NativeCase:
    directory = room / "wheels"
    wheels = [
        *consumers.jax(directory, "0.6.0"),
        *consumers.jax(directory, "0.6.2"),
        consumers.cudnn(directory, "9.8.0"),
    ]
    pins = ["jax==0.6.2", "jaxlib==0.6.2", f"jax-cuda12-plugin=={own}", f"jax-cuda12-pjrt=={own}", "nvidia-cudnn-cu12"]
    return consumers.build(room, wheels, pins, PROGRAM)


def test_the_plugin_comes_in_the_release_of_jax(tmp_path: Path) -> None:
    changes = [("jax-cuda12-pjrt", "0.6.0", "0.6.2"), ("jax-cuda12-plugin", "0.6.0", "0.6.2")]
    prove_repair(build(tmp_path, "0.6.0"), "consumer-parts", list(changes), "on the GPU\n")


def test_one_release_of_all_parts_is_healthy(tmp_path: Path) -> None:
    assert found_by_facts(build(tmp_path, "0.6.2")).verdict == "healthy"
