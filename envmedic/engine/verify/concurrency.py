"""The number of imports that may run at the same time on this machine, by its CPUs and memory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST = 16
"""More gain little: the longest single import sets the pace."""
BYTES_EACH = 2 * 10**9
"""Room that one import is given. torch with its CUDA libraries takes 0.7 GB of memory that is its own."""


@dataclass(frozen=True)
class System:
    """Where the kernel tells of memory and control groups."""

    meminfo: Path = Path("/proc/meminfo")
    membership: Path = Path("/proc/self/cgroup")
    groups: Path = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class _Memory:
    """File names of a memory controller and the mark of its lines in /proc/PID/cgroup."""

    mark: str
    folder: str
    limit: str
    used: str
    reclaimable: str
    """Line of ``memory.stat``: page cache, which counts as used."""


_CONTROLLERS = (
    _Memory("0::", "", "memory.max", "memory.current", "inactive_file"),
    _Memory(":memory:", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Of control groups version 2 and version 1."""


def at_once(system: System | None = None) -> int:
    """As many as this process may use CPUs, at most `MOST`, and as many as there is memory for; at least one."""
    where = system or System()
    # A container may be pinned to CPUs (affinity), limited in CPU time (quota) or in memory; each can be the tightest.
    cpus = min(len(os.sched_getaffinity(0)), _quota(where), MOST)
    return int(max(1, min(cpus, available_bytes(where) // BYTES_EACH)))


def available_bytes(system: System) -> float:
    """Memory that can be had without swapping: of the machine, or of a control group that allows less."""
    left = (
        _left(folder, controller)
        for controller in _CONTROLLERS
        for folder in _groups(system, controller.mark, controller.folder)
    )
    return min(_available(system.meminfo), *left, math.inf)


def _available(meminfo: Path) -> float:
    for line in meminfo.read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return math.inf


def _groups(system: System, mark: str, folder: str) -> Iterator[Path]:
    """The control groups of this process, innermost first, as far as they can be seen."""
    root = system.groups / folder
    for line in _text(system.membership).splitlines():
        _, found, own = line.partition(mark)
        if found:
            inside = root / own.lstrip("/")
            yield from (path for path in (inside, *inside.parents) if path.is_relative_to(root))


def _left(folder: Path, names: _Memory) -> float:
    """Bytes that a control group has left."""
    limit, used = _text(folder / names.limit), _text(folder / names.used)
    if not limit.isdigit() or not used.isdigit():  # no limit ("max"), or no such controller
        return math.inf
    # The kernel gives inactive page cache back before it kills, so it does not count as used.
    statistics = dict(line.split(" ", 1) for line in _text(folder / "memory.stat").splitlines())
    return int(limit) - int(used) + int(statistics.get(names.reclaimable, 0))


def _quota(system: System) -> float:
    """CPUs that the tightest control group (version 2) allows, rounded up; infinite where none limits them."""
    return min((_cpus(folder / "cpu.max") for folder in _groups(system, "0::", "")), default=math.inf)


def _cpus(file: Path) -> float:
    quota, _, period = _text(file).partition(" ")
    return max(1, math.ceil(int(quota) / int(period))) if quota.isdigit() else math.inf


def _text(file: Path) -> str:
    """Content of a control file; empty where the group has none (the root, or a controller that is off)."""
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""
