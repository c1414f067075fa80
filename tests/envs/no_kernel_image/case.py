"""Builds the broken environment of this case: a torch without code for the GPU. See README.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.support.gpu_family import Build, host_file, torch_wheel, variant_index
from tests.support.native_case import NativeCase, build_native

CU126 = Build("2.7.1", "12.6", ("5.0", "6.0", "7.0", "7.5", "8.0", "8.6", "9.0"))
CU128 = Build("2.7.1", "12.8", ("7.5", "8.0", "8.6", "9.0", "10.0", "12.0"), ("12.0",))
PROGRAM = "import torch\n\nprint('CUDA', torch.version.cuda)\n"


@dataclass(frozen=True)
class GpuCase:
    """An environment, the node that it is for, and where PyTorch's own indexes are."""

    native: NativeCase
    node: Path
    torch_index: str

    def options(self) -> tuple[str, ...]:
        """The environment, on that node."""
        return ("-p", str(self.native.prefix), "--host", str(self.node))

    def variables(self) -> dict[str, str]:
        """Where wheels of a CUDA variant are."""
        return {"ENVMEDIC_TORCH_INDEX": self.torch_index}


def build(
    room: Path, *capabilities: str, installed: Build = CU126, others: tuple[Build, ...] = (CU126, CU128)
) -> GpuCase:
    """An environment with the `installed` build, for a node with GPUs of these `capabilities`."""
    torch = torch_wheel(room / "wheels", installed, labelled=False)
    native = build_native(room, [torch], ["torch"], PROGRAM)
    return GpuCase(native, host_file(room, *capabilities), variant_index(room, others))
