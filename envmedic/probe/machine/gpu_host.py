"""NVIDIA devices, libraries and device files of the host, found without the driver.

The sources are /sys, /dev and the loader's cache. They distinguish a host whose driver does not answer from
a host without a GPU.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from envmedic.probe.readable import names, read_text

_NVIDIA = "0x10de"
"""NVIDIA's number as a maker of PCI devices."""
_DISPLAY = "0x03"
"""How the class of display controllers begins (PCI class codes: VGA 0x0300, 3D 0x0302)."""
_LIBRARY_VERSION = re.compile(r"libcuda\.so\.(\d+\.\d+(?:\.\d+)?)$")
_DEVICE_FILE = re.compile(r"nvidia(?:ctl|-uvm|\d+)")


class Hardware(msgspec.Struct, frozen=True):
    """NVIDIA parts of a host."""

    pci_gpus: int | None
    """NVIDIA GPUs on the PCI bus; None where the bus cannot be read."""
    libraries: str | None
    """Version of the driver's libraries, by the name of the file that libcuda.so.1 leads to."""
    device_files: tuple[str, ...]
    """The driver's files in /dev."""


def observe(root: Path, cache: Mapping[str, tuple[str, ...]]) -> Hardware:
    """Look for them under `root` (/ except in tests); `cache` is the loader's."""
    return Hardware(
        pci_gpus=_pci_gpus(root / "sys/bus/pci/devices"),
        libraries=_libraries(cache),
        device_files=tuple(name for name in names(root / "dev") if _DEVICE_FILE.fullmatch(name)),
    )


def _pci_gpus(devices: Path) -> int | None:
    # sandboxes hide /sys/bus/pci: an empty list there proves nothing, so the answer is None and not 0
    found = names(devices)
    if not found:
        return None
    return sum(
        (read_text(devices / name / "vendor") or "").strip() == _NVIDIA
        and (read_text(devices / name / "class") or "").startswith(_DISPLAY)
        for name in found
    )


def _libraries(cache: Mapping[str, tuple[str, ...]]) -> str | None:
    """Programs load the first libcuda.so.1 of the cache; its file is named after the driver's version."""
    for path in cache.get("libcuda.so.1", ()):
        match = _LIBRARY_VERSION.search(os.path.realpath(path))
        if match is not None:
            return match[1]
    return None
