"""Builds an environment with a torch for CUDA 13, and indexes that have it for CUDA 12 as well. See README.md."""

from __future__ import annotations

from pathlib import Path

from tests.support.cuda_family import torch_wheel
from tests.support.index import write_index
from tests.support.native_case import NativeCase, build_native

PROGRAM = """\
import torch

if torch.version.cuda >= "13":
    raise RuntimeError("The NVIDIA driver on your system is too old (found version 12040).")
print("CUDA", torch.version.cuda)
"""


def build(room: Path, *others: str, installed: str = "2.11.0", cuda: str = "13.0") -> tuple[NativeCase, str]:
    """The environment, and the template of the index of CUDA variants, which has the builds `others`."""
    torch = torch_wheel(room / "wheels", installed, cuda=cuda)
    wanted = others or ("2.11.0+cu129",)
    for variant in {build.partition("+")[2] for build in wanted}:
        release = f"{variant[2:-1]}.{variant[-1]}"
        builds = [build for build in wanted if build.endswith(variant)]
        write_index(room / "variants" / variant, [torch_wheel(room / "older", build, cuda=release) for build in builds])
    case = build_native(room, [torch], ["torch"], PROGRAM)
    return case, (room / "variants").as_uri() + "/{variant}/simple"
