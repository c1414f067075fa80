"""Whether a process started here can use a GPU."""

from __future__ import annotations

import os

from envmedic.model.facts import Gpu
from envmedic.probe.machine import driver

_NEEDED_BYTES = 2 << 30
"""What checks take of a GPU's memory at most: a context of each process, and the largest products."""
_GIGABYTE = 10**9


def visible() -> tuple[bool, str]:
    """Return whether a visible GPU has room for checks, and if not why; also which ones are full beside others."""
    return usable(driver.observe(os.environ), os.environ.get("CUDA_VISIBLE_DEVICES"))


def usable(found: driver.Driver, setting: str | None) -> tuple[bool, str]:
    """Return the answer of `visible` for what the driver says."""
    shown = [gpu for gpu in found.gpus if gpu.visible]
    if not shown:
        return False, reason(found, setting)
    return any(not _full(found, gpu) for gpu in shown), _of_full(found)


def full_devices() -> str:
    """Return which visible GPUs are full, by what, and on how many checks run then; empty where all are free."""
    return _of_full(driver.observe(os.environ))


def _of_full(found: driver.Driver) -> str:
    shown = [gpu for gpu in found.gpus if gpu.visible]
    full = [gpu for gpu in shown if _full(found, gpu)]
    told = "; ".join(_told(gpu, found.uses[gpu.index]) for gpu in full)
    free = len(shown) - len(full)
    return f"{told}: checks run on {free} of {len(shown)} GPUs" if full and free else told


def free_devices() -> str | None:
    """Return the value of CUDA_VISIBLE_DEVICES that leaves full GPUs out; None where all are free, or all are full."""
    return without_full(driver.observe(os.environ))


def without_full(found: driver.Driver) -> str | None:
    """Return the answer of `free_devices` for what the driver says."""
    shown = [gpu for gpu in found.gpus if gpu.visible]
    free = [gpu.uuid for gpu in shown if not _full(found, gpu)]
    # names by number would be CUDA's, whose order is another one on mixed machines; parts of a GPU have their own names
    if found.mig or not free or len(free) == len(shown) or None in free:
        return None
    return ",".join(uuid for uuid in free if uuid is not None)


def _full(found: driver.Driver, gpu: Gpu) -> bool:
    use = found.uses.get(gpu.index)
    # whoever fills it: in a container the driver names no process of another one
    return use is not None and use.free_bytes < min(_NEEDED_BYTES, use.total_bytes // 2)


def _told(gpu: Gpu, use: driver.GpuUse) -> str:
    held = ", ".join(
        f"pid {pid}" + (f" with {used / _GIGABYTE:.1f} GB" if used is not None else "") for pid, used in use.processes
    )
    held = held or "by processes that are not visible from here"
    return f"GPU {gpu.index} is full ({held}; {use.free_bytes // 10**6} of {use.total_bytes // 10**6} MB are free)"


def reason(found: driver.Driver, setting: str | None) -> str:
    """Why no GPU is visible."""
    if found.gpus:
        return f"CUDA_VISIBLE_DEVICES={setting} hides every GPU of this host"
    if found.version is None:
        return f"no NVIDIA driver ({found.nvml_error})" if found.nvml_error else "no NVIDIA driver"
    detail = f" ({found.nvml_error})" if found.nvml_error else ""
    return f"driver {found.version} reports no GPU{detail}"
