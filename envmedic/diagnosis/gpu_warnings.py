"""What of the condition of GPUs an administrator would look into. Pure; none of it is repaired.

Meanings of Xids: NVIDIA, "XID Errors"; of remapped rows: "NVIDIA GPU Memory Error Management"; of throttle reasons: nvml.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from envmedic.model.answers.gpu_health import GpuHealth, HostGpus, Xid

NEAR_SLOWDOWN_C: Final = 5
"""So many degrees below the temperature at which the hardware slows down, a GPU is too hot."""
LEAST_OF_MEMORY, LEAST_OF_PCIE = 0.6, 0.5
"""Shares of what memory and PCIe could move that a sound GPU exceeds: 0.8 to 0.9 were measured on H100 and H200."""
PCIE_GB_S: Final[Mapping[int, float]] = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""Of one lane in one direction, by generation (PCI-SIG, after encoding)."""
_LIMITING: Final[Mapping[str, str]] = {
    "hardware slowdown": "the hardware has slowed it down (heat, power or a fault of its supply)",
    "hardware thermal slowdown": "the hardware has slowed it down because of heat: look at fans and air flow",
    "software thermal slowdown": "the driver has slowed it down because of heat: look at fans and air flow",
    "power brake": "the supply of the host has slowed it down (power brake): look at the power supplies",
}
"""Throttle reasons that a sound GPU in a sound host does not have; a power cap under load is ordinary."""
_HARDWARE: Final[Mapping[int, str]] = {
    48: "an error of two bits in its memory",
    61: "a fault of its microcontroller",
    62: "a fault of its microcontroller",
    63: "a row of its memory was replaced",
    64: "a row of its memory could not be replaced",
    74: "an error of NVLink",
    79: "it has fallen off the bus",
    92: "many corrected errors of its memory",
    94: "a contained error of its memory: the program that had it was ended",
    95: "an uncontained error of its memory: the GPU needs a reset",
    119: "its system processor (GSP) does not answer",
    120: "a fault of its system processor (GSP)",
}
"""Errors that speak of the hardware; others, such as 13, 31, 43 and 45, are mostly of programs."""


def judged(found: HostGpus, figures: Sequence[tuple[str, Mapping[str, float]]] = ()) -> HostGpus:
    """`found` with its warnings; `figures` are the names of GPUs with what was measured on them."""
    warnings = [
        *(f"GPU {gpu.index}: {text}" for gpu in found.gpus for text in _of_gpu(gpu)),
        *_of_log(found.xids or ()),
        *(text for name, measured in figures for text in _slow(name, measured, found.gpus)),
    ]
    return msgspec.structs.replace(found, warnings=tuple(dict.fromkeys(warnings)))


def _of_gpu(gpu: GpuHealth) -> Iterator[str]:
    if gpu.error is not None:
        yield f"it cannot be asked: {gpu.error}"
        return
    yield from _of_memory(gpu)
    yield from (_LIMITING[reason] for reason in gpu.throttled if reason in _LIMITING)
    if gpu.temperature_c is not None and gpu.slowdown_c and gpu.temperature_c >= gpu.slowdown_c - NEAR_SLOWDOWN_C:
        yield f"it has {gpu.temperature_c} °C, and slows down at {gpu.slowdown_c} °C: look at fans and air flow"
    yield from _of_links(gpu)
    yield from _of_use(gpu)


def _of_memory(gpu: GpuHealth) -> Iterator[str]:
    if gpu.ecc is False:
        yield "ECC is off, so that flipped bits in its memory go unseen: `nvidia-smi -e 1` and a reset switch it on"
    if gpu.errors_uncorrected:
        yield f"{gpu.errors_uncorrected} memory errors that could not be corrected since the driver was loaded: reset it"
    if gpu.remap_failed:
        yield "a broken row of its memory has no spare row left: have the GPU replaced"
    elif gpu.remap_pending:
        yield "a broken row of its memory waits to be replaced: reset the GPU when no program uses it"
    elif gpu.remapped_after_uncorrected:
        yield f"{gpu.remapped_after_uncorrected} rows of its memory were replaced after errors that could not be corrected"


def _of_links(gpu: GpuHealth) -> Iterator[str]:
    if gpu.pcie_lanes and gpu.pcie_lanes_most and gpu.pcie_lanes < gpu.pcie_lanes_most:
        yield f"{gpu.pcie_lanes} of {gpu.pcie_lanes_most} lanes of PCIe are up: look at the slot or the riser"
    if 0 < gpu.nvlinks_active < gpu.nvlinks:
        yield f"{gpu.nvlinks_active} of {gpu.nvlinks} NVLinks are up: `nvidia-smi nvlink -s` names the others"


def _of_use(gpu: GpuHealth) -> Iterator[str]:
    if gpu.compute_mode == "prohibited":
        yield "its compute mode lets no program use it: `nvidia-smi -c DEFAULT` changes that"
    if gpu.compute_mode == "exclusive-process":
        yield "its compute mode lets one process at a time use it, so loaders or ranks that share it fail"
    if gpu.mig and not gpu.mig_devices:
        yield "MIG is on and it has no instance, so that no program can use it: `nvidia-smi mig -cgi` makes one"
    if gpu.processes:
        told = ", ".join(
            f"pid {item.pid}" + (f" with {item.bytes / 1e9:.1f} GB" if item.bytes is not None else "")
            for item in gpu.processes
        )
        yield f"other programs use it: {told}"


def _of_log(xids: Iterable[Xid]) -> Iterator[str]:
    for xid in xids:
        times = f" ({xid.count} times)" if xid.count > 1 else ""
        meaning = _HARDWARE.get(xid.number)
        if meaning is not None:
            yield f"the kernel's log has Xid {xid.number} of the GPU at {xid.pci}{times}: {meaning}"


def _slow(name: str, measured: Mapping[str, float], gpus: Sequence[GpuHealth]) -> Iterator[str]:
    """What moves fewer bytes than GPUs of that name can; parts of a GPU (MIG) have a share of its memory's."""
    alike = [gpu for gpu in gpus if gpu.name == name and not gpu.mig]
    memory = min((gpu.memory_gb_s for gpu in alike if gpu.memory_gb_s), default=None)
    got = measured.get("memory_gb_s")
    if memory and got is not None and got < LEAST_OF_MEMORY * memory:
        yield f"{name}: its memory moves {got:.0f} GB/s of {memory:.0f} GB/s: look at its clocks and at who else uses it"
    lanes = [
        PCIE_GB_S[gpu.pcie_generation_most] * gpu.pcie_lanes_most
        for gpu in alike
        if gpu.pcie_generation_most and gpu.pcie_generation_most in PCIE_GB_S and gpu.pcie_lanes_most
    ]
    for key, way in (("to_gpu_gb_s", "to the GPU"), ("from_gpu_gb_s", "from the GPU")):
        got = measured.get(key)
        if lanes and got is not None and got < LEAST_OF_PCIE * min(lanes):
            yield f"{name}: copies {way} run at {got:.1f} GB/s, where its PCIe allows {min(lanes):.0f} GB/s"
