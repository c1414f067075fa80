"""The condition of a host's GPUs, as its administrator looks at it."""

from __future__ import annotations

from typing import Literal

from envmedic.model.base import Model

ComputeMode = Literal["default", "exclusive-process", "prohibited"]


class GpuProcess(Model, frozen=True, kw_only=True):
    """A program that has memory of a GPU."""

    pid: int
    bytes: int | None = None
    """Null where the driver does not tell."""


# None stands for what a GPU does not have, or its driver does not tell.
class GpuHealth(Model, frozen=True, kw_only=True):
    """What NVML says of one GPU at one moment."""

    index: int
    """NVML index, in PCI order."""
    name: str = ""
    uuid: str | None = None
    error: str | None = None
    """Why the GPU cannot be asked."""
    ecc: bool | None = None
    """Whether its memory corrects flipped bits."""
    errors_corrected: int | None = None
    """Memory errors that ECC corrected since the driver was loaded."""
    errors_uncorrected: int | None = None
    """Memory errors that ECC could not correct since the driver was loaded."""
    errors_uncorrected_ever: int | None = None
    """The same in the life of the GPU."""
    remapped_rows: int | None = None
    """Rows of memory that spare ones stand in for."""
    remapped_after_uncorrected: int | None = None
    """Of these, the rows with an error that could not be corrected."""
    remap_pending: bool | None = None
    """Whether a row waits for the next reset of the GPU to be replaced."""
    remap_failed: bool | None = None
    """Whether there was no spare row for one."""
    throttled: tuple[str, ...] = ()
    """Why its clocks are held down at this moment, as NVML names the reasons."""
    temperature_c: int | None = None
    slowdown_c: int | None = None
    """Temperature at which the hardware slows down."""
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_mhz: int | None = None
    """Clock of the multiprocessors at this moment."""
    sm_most_mhz: int | None = None
    memory_mhz: int | None = None
    memory_most_mhz: int | None = None
    memory_bus_bits: int | None = None
    pcie_generation: int | None = None
    """At this moment: an idle GPU may lower it."""
    pcie_generation_most: int | None = None
    """What GPU and slot can do."""
    pcie_lanes: int | None = None
    pcie_lanes_most: int | None = None
    pcie_replays: int | None = None
    """Transfers that were repeated since the driver was loaded."""
    nvlinks: int = 0
    """Connections by NVLink that its driver knows."""
    nvlinks_active: int = 0
    nvlink_errors: int = 0
    """Replays, recoveries and wrong checksums on them since the driver was loaded: sound links have hundreds."""
    compute_mode: ComputeMode | None = None
    """How many programs may use it: any number, one, or none."""
    mig: bool | None = None
    """Whether it is divided into instances (MIG)."""
    mig_devices: int = 0
    processes: tuple[GpuProcess, ...] = ()
    """Other programs that use it; a container may show none."""
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None

    @property
    def memory_gb_s(self) -> float | None:
        """Bytes that its memory can move in a second, in units of 10**9: two words a clock over the whole bus."""
        if not self.memory_most_mhz or not self.memory_bus_bits:
            return None
        return self.memory_most_mhz * 1e6 * 2 * self.memory_bus_bits / 8 / 1e9


class Xid(Model, frozen=True, kw_only=True):
    """An error of a GPU in the kernel's log."""

    number: int
    """NVIDIA's number for the kind of error."""
    pci: str
    """The GPU's address on the PCI bus."""
    count: int = 1
    """Lines of the log with it."""


class HostGpus(Model, frozen=True, kw_only=True):
    """The condition of all GPUs of a host, with what of it deserves attention."""

    gpus: tuple[GpuHealth, ...] = ()
    xids: tuple[Xid, ...] | None = None
    """Errors in the kernel's log; null where the log cannot be read."""
    error: str | None = None
    """Why NVML cannot tell."""
    warnings: tuple[str, ...] = ()
    """What an administrator would look into. None of it is repaired."""
