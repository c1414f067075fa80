"""NVIDIA's libraries gone from an environment, as an interrupted upgrade or a cleaning script leaves it."""

from __future__ import annotations

from collections.abc import Callable

from tests.gpu.replays.packing import pack
from tests.gpu.replays.replay import Command, NotHere, Replay
from tests.gpu.replays.room import Room

MISSING = frozenset({"missing-cuda-library", "half-installed"})
IMPORT = "import torch; d = 'cuda' if torch.cuda.is_available() else 'cpu'; torch.ones(4, device=d).sum().item()"


def without(distribution: str, library: str) -> Callable[[Room], Command]:
    """Delete the files of one library; its distribution's wheel is packed of the healthy ones before."""

    def provoke(room: Room) -> Command:
        elsewhere(room, library)
        pack(room.site, distribution_of(room, distribution), room.links)
        for path in room.found(f"nvidia/**/lib/{library}.*"):
            path.unlink()
        return ("python", "-c", IMPORT)

    return provoke


def uninstalled(distribution: str, library: str) -> Callable[[Room], Command]:
    """Take a whole wheel out, as the removal of another package's needs does it."""

    def provoke(room: Room) -> Command:
        elsewhere(room, library)
        name = distribution_of(room, distribution)
        pack(room.site, name, room.links)
        room.run("uv", "pip", "uninstall", "--python", room.python, name.replace("_", "-")).must()
        return ("python", "-c", IMPORT)

    return provoke


def distribution_of(room: Room, start: str) -> str:
    """The distribution's name with the CUDA release that it may end in, as its metadata directory spells it."""
    return room.found(f"{start}*.dist-info")[0].name.partition("-")[0]


def elsewhere(room: Room, library: str) -> None:
    """Raise NotHere where the system has the library too: then nothing fails without the environment's own."""
    listed = room.run("ldconfig", "-p").must().out
    if f"{library}." in listed:
        raise NotHere(f"this machine has a {library} of its own, which the loader then takes")


REPLAYS = (
    Replay("cudnn-missing", "libcudnn deleted", MISSING, without("nvidia_cudnn", "libcudnn.so")),
    Replay("nvshmem-missing", "libnvshmem_host deleted", MISSING, without("nvidia_nvshmem", "libnvshmem_host.so")),
    Replay(
        "cusparselt-missing", "cuSPARSELt uninstalled", MISSING, uninstalled("nvidia_cusparselt", "libcusparseLt.so")
    ),
    Replay("nvjitlink-missing", "libnvJitLink deleted", MISSING, without("nvidia_nvjitlink", "libnvJitLink.so")),
    Replay("nccl-missing", "NCCL uninstalled", MISSING, uninstalled("nvidia_nccl", "libnccl.so")),
)
