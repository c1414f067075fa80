"""Builds an environment with a torch for CUDA 13, and indexes that have it for CUDA 12 as well. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.cuda_family import torch_wheel
from tests.support.index import write_index
from tests.support.native_case import NativeCase, build_native

PROGRAM = """\
import torch

if torch.version.cuda == "13.0":
    raise RuntimeError("The NVIDIA driver on your system is too old (found version 12040).")
print("CUDA", torch.version.cuda)
"""


def build(room: Path) -> tuple[NativeCase, str]:
    """The environment, and the template of the index of CUDA variants."""
    torch = torch_wheel(room / "wheels", "2.11.0", cuda="13.0")
    older = torch_wheel(room / "older", "2.11.0+cu129", cuda="12.9")
    write_index(room / "variants" / "cu129", [older])
    case = build_native(room, [torch], ["torch"], PROGRAM)
    return case, (room / "variants").as_uri() + "/{variant}/simple"
