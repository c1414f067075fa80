"""NVIDIA's libraries gone from an environment, cut off or of another release, as interrupted upgrades leave them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.gpu import container
from tests.gpu.replays import hidden
from tests.gpu.replays.packing import pack
from tests.gpu.replays.replay import Command, NotHere, Replay
from tests.gpu.replays.room import Room

MISSING = frozenset({"missing-cuda-library", "half-installed"})
CONFLICT = frozenset({"nvidia-wheel-conflict", "cudnn-mismatch"})
IMPORT = "import torch; d = 'cuda' if torch.cuda.is_available() else 'cpu'; torch.ones(4, device=d).sum().item()"
CONVOLUTION = (
    f"{IMPORT}; x = torch.rand(2, 3, 8, 8, device=d); w = torch.rand(4, 3, 3, 3, device=d);"
    "y = torch.nn.functional.conv2d(x, w);"
    "assert torch.allclose(y.cpu(), torch.nn.functional.conv2d(x.cpu(), w.cpu()), rtol=1e-2, atol=1e-2)"
)
COMMAND: Command = ("python", "-c", CONVOLUTION)


def without(distribution: str, library: str) -> Callable[[Room], Command]:
    """Delete the files of one library; its distribution's wheel is packed of the healthy ones before."""

    def provoke(room: Room) -> Command:
        pack(room.site, distribution_of(room, distribution), room.links)
        for path in room.found(f"nvidia/**/lib/{library}.*"):
            path.unlink()
        return seen(room, library)

    return provoke


def uninstalled(distribution: str, library: str) -> Callable[[Room], Command]:
    """Take a whole wheel out, as the removal of another package's needs does it."""

    def provoke(room: Room) -> Command:
        name = distribution_of(room, distribution)
        pack(room.site, name, room.links)
        room.run("uv", "pip", "uninstall", "--python", room.python, name.replace("_", "-")).must()
        return seen(room, library)

    return provoke


def cut_off(distribution: str, library: str) -> Callable[[Room], Command]:
    """Leave half of a library, as a full disk or an interrupted copy does it."""

    def provoke(room: Room) -> Command:
        pack(room.site, distribution_of(room, distribution), room.links)
        path = room.found(f"nvidia/**/lib/{library}.*")[0]
        room.write(path, path.read_bytes()[: path.stat().st_size // 2])
        return COMMAND

    return provoke


def older(distribution: str, library: str, since: str) -> Callable[[Room], Command]:
    """Put a library of the same name there that lacks the functions which begin with `since`, as an older one does."""

    def provoke(room: Room) -> Command:
        pack(room.site, distribution_of(room, distribution), room.links)
        path = room.found(f"nvidia/**/lib/{library}.*")[0]
        room.write(path, _reduced(room, path, since).read_bytes())
        return COMMAND

    return provoke


def _reduced(room: Room, path: Path, since: str) -> Path:
    """A library that defines what the one at `path` does, functions that begin with `since` apart."""
    argv = ("nm", "-D", "--defined-only", "--with-symbol-versions", str(path))
    listed = [
        line.split() for line in subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    ]
    functions = dict(row[2].replace("@@", "@").partition("@")[::2] for row in listed if row[1] in "TWi")
    if not any(name.startswith(since) for name in functions):
        raise NotHere(f"{path.name} here has no function that begins with {since}")
    kept = {name: version for name, version in functions.items() if not name.startswith(since) and name.isidentifier()}
    source, versions, made = (room.folder / name for name in ("older.c", "older.map", path.name))
    source.write_text("\n".join(f"int {name}(void) {{ return 1; }}" for name in sorted(kept)), encoding="utf-8")
    groups = {version: [name for name in kept if kept[name] == version] for version in sorted(set(kept.values()))}
    texts = [f"{version} {{ global: {'; '.join(names)}; }};" for version, names in groups.items() if version]
    versions.write_text("\n".join(texts) or "{ global: *; };", encoding="utf-8")
    linked = (f"-Wl,-soname,{path.name}", f"-Wl,--version-script={versions}")
    room.run("gcc", "-shared", "-fPIC", "-w", "-fno-builtin", *linked, source, "-o", made).must()
    return made


def without_namespaces(room: Room) -> Command:
    """cuSPARSELt gone, in a container that may make no namespaces and mount nothing."""
    room.within.extend((sys.executable, str(Path(container.__file__))))
    return uninstalled("nvidia_cusparselt", "libcusparseLt.so")(room)


def seen(room: Room, library: str) -> Command:
    """The command that misses a library. One of the system is taken out of sight, where a program would get it."""
    room.outside["LD_LIBRARY_PATH"] = ""
    if room.activated(*COMMAND).code == 0:
        hidden.hide(room, library)
    if room.activated(*COMMAND).code == 0:
        raise NotHere(f"torch works without {library} of the environment, and no other copy could be hidden")
    return COMMAND


def distribution_of(room: Room, start: str) -> str:
    """The distribution's name with the CUDA release that it may end in, as its metadata directory spells it."""
    return room.found(f"{start}*.dist-info")[0].name.partition("-")[0]


REPLAYS = (
    Replay("cudnn-missing", "libcudnn deleted", MISSING, without("nvidia_cudnn", "libcudnn.so")),
    Replay("nvshmem-missing", "libnvshmem_host deleted", MISSING, without("nvidia_nvshmem", "libnvshmem_host.so")),
    Replay(
        "cusparselt-missing", "cuSPARSELt uninstalled", MISSING, uninstalled("nvidia_cusparselt", "libcusparseLt.so")
    ),
    Replay(
        "no-namespaces",
        "cuSPARSELt uninstalled, in a container without namespaces",
        MISSING,
        without_namespaces,
        staging="relocate",
    ),
    Replay("nvjitlink-missing", "libnvJitLink deleted", MISSING, without("nvidia_nvjitlink", "libnvJitLink.so")),
    Replay("nccl-missing", "NCCL uninstalled", MISSING, uninstalled("nvidia_nccl", "libnccl.so")),
    Replay("cudnn-cut-off", "libcudnn cut off", MISSING, cut_off("nvidia_cudnn", "libcudnn.so")),
    Replay(
        "nvjitlink-older",
        "libnvJitLink of an older release",
        CONFLICT,
        older("nvidia_nvjitlink", "libnvJitLink.so", "__nvJitLinkCreate"),
    ),
    Replay(
        "cudnn-older",
        "libcudnn of an older release",
        CONFLICT,
        older("nvidia_cudnn", "libcudnn.so", "cudnnBackend"),
    ),
    Replay("nccl-older", "NCCL of an older release", CONFLICT, older("nvidia_nccl", "libnccl.so", "ncclMem")),
)
