"""A cuDNN that the plugin of JAX refuses is replaced by one that it accepts."""

from __future__ import annotations

from pathlib import Path

from tests.support import consumers
from tests.support.repairs import prove_repair

PROGRAM = """\
from importlib.metadata import version

if version("nvidia-cudnn-cu12") < "9.8":
    raise SystemExit("RuntimeError: Outdated cuDNN installation found.\\nVersion JAX was built against: 90800")
print("cuDNN", version("nvidia-cudnn-cu12"))
"""


def test_one_that_it_accepts_comes(tmp_path: Path) -> None:
    directory = tmp_path / "wheels"
    wheels = [
        *consumers.jax(directory, "0.6.2"),
        *(consumers.cudnn(directory, version) for version in ("9.1.0", "9.8.0")),
    ]
    pins = ["jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda12-pjrt", "nvidia-cudnn-cu12==9.1.0"]
    case = consumers.build(tmp_path, wheels, pins, PROGRAM)
    prove_repair(case, "consumer-versions", [("nvidia-cudnn-cu12", "9.1.0", "9.8.0")], "cuDNN 9.8.0\n")
