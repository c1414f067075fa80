"""NVIDIA's libraries gone from an environment, as an interrupted upgrade or a cleaning script leaves it."""

from __future__ import annotations

from collections.abc import Callable

from tests.gpu.replays.packing import pack
from tests.gpu.replays.replay import Command, Replay
from tests.gpu.replays.room import Room

MISSING = frozenset({"missing-cuda-library", "half-installed"})
IMPORT = "import torch; d = 'cuda' if torch.cuda.is_available() else 'cpu'; torch.ones(4, device=d).sum().item()"
CONVOLUTION = (
    "import torch; d = 'cuda' if torch.cuda.is_available() else 'cpu';"
    "torch.nn.functional.conv2d(torch.ones(1, 1, 8, 8, device=d), torch.ones(1, 1, 3, 3, device=d)).sum().item()"
)


def without(distribution: str, library: str, program: str) -> Callable[[Room], Command]:
    """Delete the files of one library; its distribution's wheel is packed of the healthy ones before."""

    def provoke(room: Room) -> Command:
        pack(room.site, distribution, room.links)
        for path in room.found(f"nvidia/**/lib/{library}"):
            path.unlink()
        return ("python", "-c", program)

    return provoke


def uninstalled(room: Room) -> Command:
    """All of NCCL's wheel taken out, as the removal of another package's needs does it."""
    name = room.found("nvidia_nccl_cu1*.dist-info")[0].name.partition("-")[0]
    pack(room.site, name, room.links)
    room.run("uv", "pip", "uninstall", "--python", room.python, name.replace("_", "-")).must()
    return ("python", "-c", IMPORT)


REPLAYS = (
    Replay(
        "nvjitlink-missing",
        "libnvJitLink deleted",
        MISSING,
        without("nvidia_nvjitlink", "libnvJitLink.so.*", IMPORT),
    ),
    Replay(
        "cudnn-missing",
        "a part of cuDNN deleted",
        MISSING,
        without("nvidia_cudnn_cu13", "libcudnn_ops.so.*", CONVOLUTION),
    ),
    Replay("nccl-missing", "NCCL uninstalled", MISSING, uninstalled),
)
