"""The condition of GPUs, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from envmedic.model.answers.gpu_health import GpuHealth, HostGpus
from envmedic.render.style import size
from envmedic.render.text import Line, joined, line, part, table


def gpu_health_lines(found: HostGpus, *, warnings: bool = True) -> list[Line]:
    """A block for each GPU, the errors in the kernel's log, and what to look into."""
    rows = [row for gpu in found.gpus for row in _rows(gpu)]
    if found.error is not None:
        rows.append(("NVML", found.error))
    log = ", ".join(f"{item.number} of {item.pci} ({item.count}x)" for item in found.xids or ())
    rows.append(("Xid in the kernel's log", "not readable by this user" if found.xids is None else log or "none"))
    told = [joined(part("  warning: ", "warn"), item) for item in found.warnings] if warnings else []
    return [line("Condition of the GPUs", "bold"), *table(rows), *told]


def _rows(gpu: GpuHealth) -> Iterator[tuple[str, str]]:
    yield f"GPU {gpu.index}", gpu.error or gpu.name
    if gpu.error is not None:
        return
    for name, value in (
        ("memory", f"{_size(gpu.memory_free_bytes)} of {_size(gpu.memory_bytes)} free"),
        ("ECC", _ecc(gpu)),
        ("rows replaced", _rows_replaced(gpu)),
        ("clocks", f"{_pair(gpu.sm_mhz, gpu.sm_most_mhz, ' MHz')}, memory {_pair(gpu.memory_mhz, gpu.memory_most_mhz, ' MHz')}"),
        ("held down by", ", ".join(gpu.throttled) or "nothing"),
        ("temperature, power", f"{_pair(gpu.temperature_c, gpu.slowdown_c, ' °C')}, {_pair(gpu.power_w, gpu.power_limit_w, ' W')}"),
        ("PCIe", f"generation {_pair(gpu.pcie_generation, gpu.pcie_generation_most)}, lanes {_pair(gpu.pcie_lanes, gpu.pcie_lanes_most)}"),
        ("NVLink", f"{gpu.nvlinks_active} of {gpu.nvlinks} up, {gpu.nvlink_errors} transfers repeated" if gpu.nvlinks else "none"),
        ("compute mode, MIG", f"{gpu.compute_mode or '?'}, {_mig(gpu)}"),
        ("programs", ", ".join(str(item.pid) for item in gpu.processes) or "none that can be seen"),
    ):  # fmt: skip
        yield f"  {name}", value


def _ecc(gpu: GpuHealth) -> str:
    if gpu.ecc is None:
        return "not known"
    since = f"{_told(gpu.errors_corrected)} corrected and {_told(gpu.errors_uncorrected)} uncorrectable errors since the driver was loaded"
    return f"{'on' if gpu.ecc else 'off'}, {since}, {_told(gpu.errors_uncorrected_ever)} of these ever"


def _rows_replaced(gpu: GpuHealth) -> str:
    state = "failed" if gpu.remap_failed else "one waits for a reset" if gpu.remap_pending else ""
    return f"{_told(gpu.remapped_rows)}{f', {state}' if state else ''}"


def _mig(gpu: GpuHealth) -> str:
    return "MIG not known" if gpu.mig is None else f"MIG on, {gpu.mig_devices} instances" if gpu.mig else "MIG off"


def _pair(now: float | None, most: float | None, unit: str = "") -> str:
    return f"{_told(now)} of {_told(most)}{unit}"


def _told(number: float | None) -> str:
    return "?" if number is None else f"{number:g}"


def _size(number: int | None) -> str:
    return "?" if number is None else size(number)
