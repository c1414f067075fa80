"""Three faults at once."""

from __future__ import annotations

from tests.gpu.replays.faults import libraries, torchvision
from tests.gpu.replays.replay import Command, Replay
from tests.gpu.replays.room import Room

FLAGS = "from torch.utils.cpp_extension import _get_cuda_arch_flags; _get_cuda_arch_flags()"
"""What a build of an extension asks torch first."""


def three(room: Room) -> Command:
    """torchvision of another torch, a library gone, and a list with an unknown architecture; a program meets each."""
    torchvision.other_torch(room)
    libraries.uninstalled("nvidia_cusparselt", "libcusparseLt.so")(room)
    room.variable("TORCH_CUDA_ARCH_LIST", "'9.0;10.1'")
    return ("python", "-c", f"{torchvision.NMS}\n{FLAGS}")


REPLAYS = (
    Replay(
        "three-stacked",
        "torchvision of another torch, cuSPARSELt gone, an unknown architecture listed",
        frozenset({"missing-cuda-library"}),
        three,
    ),
)
