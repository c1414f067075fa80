"""Three faults at once."""

from __future__ import annotations

from tests.gpu.replays.faults import extensions, libraries, torchvision
from tests.gpu.replays.replay import Command, Replay
from tests.gpu.replays.room import Room


def three(room: Room) -> Command:
    """torchvision of another torch, no NCCL, and an extension without its CUDA source; one program needs all."""
    command = extensions.no_cuda_source(room)
    torchvision.other_torch(room)
    libraries.uninstalled(room)
    return ("python", "-c", f"{torchvision.NMS}\n{command[-1]}")


REPLAYS = (
    Replay(
        "three-stacked",
        "torchvision of another torch, NCCL gone, an extension without its CUDA source",
        frozenset({"missing-cuda-library"}),
        three,
    ),
)
