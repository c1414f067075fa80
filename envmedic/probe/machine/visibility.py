"""Which GPUs CUDA_VISIBLE_DEVICES leaves visible (CUDA programming guide, "CUDA Environment Variables")."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from envmedic.model.facts import Gpu


def visible_indices(setting: str | None, gpus: Sequence[Gpu], mig: Mapping[str, int] | None = None) -> frozenset[int]:
    """Indices of the visible GPUs; `mig` maps UUIDs of MIG devices to the index of their GPU.

    Devices are named by index or by UUID, in full or by a prefix that is unique. The first entry that
    names none ends the list; a device that is named twice makes the whole list invalid. Indices are
    taken as NVML's: CUDA's own order can differ where a machine has several kinds of GPU.
    """
    if setting is None:
        return frozenset(gpu.index for gpu in gpus)
    visible: list[int] = []
    taken: set[str] = set()
    for entry in setting.split(","):
        device = _device(entry.strip(), gpus, mig or {})
        if device is None:
            break
        name, index = device
        if name in taken:
            return frozenset()
        taken.add(name)
        visible.append(index)
    return frozenset(visible)


def _device(entry: str, gpus: Sequence[Gpu], mig: Mapping[str, int]) -> tuple[str, int] | None:
    """What one entry names: a key that tells it from others, and the index of its GPU."""
    number = re.match(r"\+?\d+", entry)  # CUDA reads as far as there are digits
    if number is not None:
        index = int(number[0])
        return (f"GPU {index}", index) if any(gpu.index == index for gpu in gpus) else None
    if entry.startswith("GPU-"):
        found = [gpu for gpu in gpus if gpu.uuid is not None and gpu.uuid.startswith(entry)]
        return (f"GPU {found[0].index}", found[0].index) if len(found) == 1 else None
    if entry.startswith("MIG-"):
        return _mig_device(entry, gpus, mig)
    return None


def _mig_device(entry: str, gpus: Sequence[Gpu], mig: Mapping[str, int]) -> tuple[str, int] | None:
    """``MIG-<uuid>``, or ``MIG-GPU-<uuid of the GPU>/<instance>/<instance>`` of drivers before 470."""
    if entry in mig:
        return entry, mig[entry]
    parent = entry.removeprefix("MIG-").partition("/")[0]
    found = [gpu for gpu in gpus if gpu.uuid == parent]
    return (entry, found[0].index) if found else None
