"""Miniatures of torch's CUDA builds: its pure-Python miniature with a library that holds GPU code, and a compiler beside it.

The fat binaries have the layout that nvcc writes; their code is filler. What each build holds code for is that of the
real wheels (`compat/data/torch_releases.json`), and so are the names of NVRTC's files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from envmedic.model.base import to_json
from envmedic.model.facts import Facts, Gpu, Host, Toolkit
from envmedic.probe.machine.host import observe_host
from tests.support.index import write_index
from tests.support.miniature import torch_sources
from tests.support.native import PLATFORM_TAGS, shared_library
from tests.support.native_case import SUMMARY
from tests.support.wheels import Wheel, make_wheel

PTX, SASS = 1, 2
MAGIC = 0xBA55ED50


@dataclass(frozen=True)
class Build:
    """One CUDA build of a torch release."""

    version: str
    cuda: str
    sass: tuple[str, ...]
    ptx: tuple[str, ...] = ()

    @property
    def variant(self) -> str:
        """Such as ``cu128``."""
        return "cu" + self.cuda.replace(".", "")


def entry(kind: int, capability: str) -> bytes:
    """One code object of a fat binary."""
    number, payload = int(capability.replace(".", "")), b"filler" * 4
    return (
        struct.pack("<HHIQ", kind, 0x101, 64, len(payload))
        + bytes(12)
        + struct.pack("<II", number, 0)
        + bytes(4)
        + struct.pack("<Q", 0x11)
        + bytes(16)
        + payload
    )


def fat_binary(sass: Iterable[str], ptx: Iterable[str] = ()) -> bytes:
    """A fat binary with code for these capabilities."""
    body = b"".join([*(entry(SASS, item) for item in sass), *(entry(PTX, item) for item in ptx)])
    return struct.pack("<IHHQ", MAGIC, 1, 16, len(body)) + body + bytes(-len(body) % 8)


def gpu_source(sass: Iterable[str], ptx: Iterable[str] = ()) -> str:
    """C source of a library whose GPU code is such a fat binary."""
    values = ",".join(map(str, fat_binary(sass, ptx)))
    return f'__attribute__((section(".nv_fatbin"), aligned(8), used)) const unsigned char code[] = {{{values}}};\n'


def torch_wheel(folder: Path, build: Build, *, labelled: bool, more: Mapping[str, str] | None = None) -> Wheel:
    """The miniature of a build; `labelled` as on PyTorch's own index, else as on the default one. `more` are files."""
    library = gpu_source(build.sass, build.ptx) + "int kernels(void) { return 1; }"
    files = torch_sources(f"{build.version}+{build.variant}", build.cuda)
    files["torch/lib/libtorch_cuda.so"] = shared_library(library, name="libtorch_cuda.so")
    major = build.cuda.partition(".")[0]
    for name in (f"libnvrtc.so.{major}", f"libnvrtc-builtins.so.{build.cuda}"):
        files[f"torch/lib/{name}"] = shared_library("int compiler;", name=name)
    files |= more or {}
    version = f"{build.version}+{build.variant}" if labelled else build.version
    return make_wheel(folder, "torch", version, files=files, tags=PLATFORM_TAGS, summary=SUMMARY)


def variant_index(room: Path, builds: Iterable[Build]) -> str:
    """Indexes of labelled wheels by variant; returns the template for ``ENVMEDIC_TORCH_INDEX``."""
    for build in builds:
        folder = room / "whl" / build.variant
        write_index(folder, [torch_wheel(folder / "files", build, labelled=True)])
    return (room / "whl").as_uri() + "/{variant}/simple"


def host_file(room: Path, *capabilities: str, toolkits: tuple[Toolkit, ...] = ()) -> Path:
    """Facts of a host with these GPUs and toolkits, as ``envmedic facts --host-only --json`` gives them there.

    Its compilers are those of this machine.
    """
    gpus = tuple(
        Gpu(index=index, name=f"GPU of capability {item}", compute_capability=item)
        for index, item in enumerate(capabilities)
    )
    host = Host(
        glibc="2.39",
        driver_version="575.57.08",
        driver_cuda="12.9",
        driver_source="nvml",
        gpus=gpus,
        toolkits=toolkits,
        compilers=observe_host().compilers,
    )
    file = room / "node.json"
    file.write_text(to_json(Facts(host=host)), encoding="utf-8")
    return file
