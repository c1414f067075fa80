"""The condition of this host's GPUs: from NVML, and from the kernel's log."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from envmedic.model.answers.gpu_health import GpuHealth, GpuProcess, HostGpus, Xid
from envmedic.probe.machine import driver

KERNEL_LOG = Path("/dev/kmsg")
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+)")
_RECORD_BYTES = 8192
"""Longest record of the kernel's log (Documentation/ABI/testing/dev-kmsg)."""


def observe() -> HostGpus:
    """Ask NVML in a child process, and read the kernel's log as far as this user may."""
    return parse(driver.ask_nvml("--health"), read_log())


def parse(answer: str | dict[str, Any], log: str | None) -> HostGpus:
    """Turn the child's answer, an error or its JSON, and the lines of the log into values."""
    xids = None if log is None else xids_of(log)
    if isinstance(answer, str):
        return HostGpus(xids=xids, error=answer)
    return HostGpus(gpus=tuple(map(_gpu, answer.get("gpus") or ())), xids=xids, error=answer.get("error"))


def _gpu(item: dict[str, Any]) -> GpuHealth:
    if item.get("error"):
        return GpuHealth(index=item["index"], error=item["error"])
    processes = [GpuProcess(pid=pid, bytes=used) for pid, used in item.get("processes") or () if pid != os.getpid()]
    given = {
        "index": item["index"],
        "name": item.get("name") or "",
        "uuid": item.get("uuid"),
        "memory_bytes": item.get("memory"),
        "memory_free_bytes": item.get("free"),
        "mig_devices": len(item.get("mig") or ()),
        **(item.get("health") or {}),
    }
    return msgspec.convert({**given, "processes": processes}, GpuHealth)


def xids_of(log: str) -> tuple[Xid, ...]:
    """The errors of GPUs in lines of the kernel's log, each kind of each GPU once."""
    counted = Counter((int(number), pci) for pci, number in _XID.findall(log))
    return tuple(Xid(number=number, pci=pci, count=count) for (number, pci), count in sorted(counted.items()))


def read_log(path: Path = KERNEL_LOG) -> str | None:
    """The kernel's log; None where this user may not read it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    records = []
    try:
        while record := os.read(descriptor, _RECORD_BYTES):
            records.append(record)
    except BlockingIOError:
        pass  # its end
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return b"\n".join(records).decode("utf-8", "replace")
