"""Whether a process started here can use a GPU."""

from __future__ import annotations

import os

from envmedic.probe.machine import driver


def visible() -> tuple[bool, str]:
    """Return (True, "") or (False, why not)."""
    found = driver.observe(os.environ)
    if any(gpu.visible for gpu in found.gpus):
        return True, ""
    return False, reason(found, os.environ.get("CUDA_VISIBLE_DEVICES"))


def reason(found: driver.Driver, setting: str | None) -> str:
    """Why no GPU is visible."""
    if found.gpus:
        return f"CUDA_VISIBLE_DEVICES={setting} hides every GPU of this host"
    if found.version is None:
        return f"no NVIDIA driver ({found.nvml_error})" if found.nvml_error else "no NVIDIA driver"
    detail = f" ({found.nvml_error})" if found.nvml_error else ""
    return f"driver {found.version} reports no GPU{detail}"
