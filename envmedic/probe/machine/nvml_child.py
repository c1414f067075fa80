"""Run as a script in a child process: asks NVML about driver and GPUs and prints one JSON object.

A process of its own, since NVML can hang on a sick driver or end the process that uses it. With ``--health`` it asks
for the condition of the GPUs too, which takes longer.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from typing import Any

THROTTLING = {
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}
"""Bits of ``nvmlClocksEventReasons`` (nvml.h); an idle GPU (0x1) is not held down."""
COMPUTE_MODES = {0: "default", 2: "prohibited", 3: "exclusive-process"}


def collect(*, health: bool = False) -> dict[str, Any]:
    """Driver and GPUs, with their condition where `health` asks for it; ``error`` where NVML says why it cannot tell."""
    try:
        import pynvml
    except ImportError:
        return {"error": "the package nvidia-ml-py is not installed"}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"error": str(error)}
    answer: dict[str, Any] = {
        "driver": _value(pynvml, pynvml.nvmlSystemGetDriverVersion),
        "cuda": _value(pynvml, pynvml.nvmlSystemGetCudaDriverVersion_v2),
    }
    try:
        answer["gpus"] = [_gpu(pynvml, index, health=health) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        answer["error"] = str(error)
    return answer


def _value(pynvml: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Answer of one query; None where this device or driver does not support it."""
    # what an older driver lacks is no NVMLError where the binding knows several versions of the function
    mismatch: type[Exception] = getattr(pynvml, "NVMLLibraryMismatchError", pynvml.NVMLError)
    try:
        value = function(*arguments)
    except (pynvml.NVMLError, mismatch):
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _gpu(pynvml: Any, index: int, *, health: bool) -> dict[str, Any]:
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError as error:  # fallen off the bus, or no permission
        return {"index": index, "name": "", "error": str(error)}
    capability = _value(pynvml, pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    memory = _value(pynvml, pynvml.nvmlDeviceGetMemoryInfo, handle)
    pci = _value(pynvml, pynvml.nvmlDeviceGetPciInfo, handle)
    bus = getattr(pci, "busId", None)
    return {
        "index": index,
        "name": _value(pynvml, pynvml.nvmlDeviceGetName, handle),
        "uuid": _value(pynvml, pynvml.nvmlDeviceGetUUID, handle),
        "capability": list(capability) if capability is not None else None,
        "memory": memory.total if memory is not None else None,
        "free": memory.free if memory is not None else None,
        "processes": _processes(pynvml, handle),
        "pci": bus.decode("ascii", "replace") if isinstance(bus, bytes) else bus,
        "mig": _mig(pynvml, handle),
        "fabric": _fabric(pynvml, handle),
        "health": _health(pynvml, handle) if health else None,
    }


def _health(pynvml: Any, handle: Any) -> dict[str, Any]:
    """The fields of `GpuHealth` that NVML answers; None where this device or driver does not support one."""

    def ask(name: str, *arguments: Any) -> Any:
        function = getattr(pynvml, f"nvmlDeviceGet{name}", None)  # the binding may be older
        return None if function is None else _value(pynvml, function, handle, *arguments)

    corrected, uncorrected = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
    since_load, ever = pynvml.NVML_VOLATILE_ECC, pynvml.NVML_AGGREGATE_ECC
    ecc, mig = ask("EccMode"), ask("MigMode")
    rows = ask("RemappedRows") or (None, None, None, None)
    reasons = ask("CurrentClocksThrottleReasons") or 0
    power, limit = ask("PowerUsage"), ask("EnforcedPowerLimit")
    return {
        "ecc": bool(ecc[0]) if ecc else None,
        "errors_corrected": ask("TotalEccErrors", corrected, since_load),
        "errors_uncorrected": ask("TotalEccErrors", uncorrected, since_load),
        "errors_uncorrected_ever": ask("TotalEccErrors", uncorrected, ever),
        "remapped_rows": None if rows[0] is None else rows[0] + rows[1],
        "remapped_after_uncorrected": rows[1],
        "remap_pending": None if rows[2] is None else bool(rows[2]),
        "remap_failed": None if rows[3] is None else bool(rows[3]),
        "throttled": [name for bit, name in THROTTLING.items() if reasons & bit],
        "temperature_c": ask("Temperature", pynvml.NVML_TEMPERATURE_GPU),
        "slowdown_c": ask("TemperatureThreshold", pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        "power_w": None if power is None else power / 1000,
        "power_limit_w": None if limit is None else limit / 1000,
        "sm_mhz": ask("ClockInfo", pynvml.NVML_CLOCK_SM),
        "sm_most_mhz": ask("MaxClockInfo", pynvml.NVML_CLOCK_SM),
        "memory_mhz": ask("ClockInfo", pynvml.NVML_CLOCK_MEM),
        "memory_most_mhz": ask("MaxClockInfo", pynvml.NVML_CLOCK_MEM),
        "memory_bus_bits": ask("MemoryBusWidth"),
        "pcie_generation": ask("CurrPcieLinkGeneration"),
        "pcie_generation_most": ask("MaxPcieLinkGeneration"),
        "pcie_lanes": ask("CurrPcieLinkWidth"),
        "pcie_lanes_most": ask("MaxPcieLinkWidth"),
        "pcie_replays": ask("PcieReplayCounter"),
        "compute_mode": COMPUTE_MODES.get(ask("ComputeMode")),
        "mig": bool(mig[0]) if mig else None,
        **_nvlinks(pynvml, ask),
    }


def _nvlinks(pynvml: Any, ask: Callable[..., Any]) -> dict[str, int]:
    """How many links NVML knows, how many are up, and their errors."""
    known = active = errors = 0
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        state = ask("NvLinkState", link)
        if state is None:  # links are numbered from 0 on: the first that is not known ends the list
            break
        known, active = known + 1, active + bool(state)
        if state:
            counts = (ask("NvLinkErrorCounter", link, kind) or 0 for kind in range(pynvml.NVML_NVLINK_ERROR_COUNT - 1))
            errors += sum(counts)
    return {"nvlinks": known, "nvlinks_active": active, "nvlink_errors": errors}


def _processes(pynvml: Any, handle: Any) -> list[list[int | None]]:
    """Process ids and bytes of the programs that use a GPU; in a container none may be shown."""
    running = _value(pynvml, pynvml.nvmlDeviceGetComputeRunningProcesses, handle) or []
    return [[item.pid, item.usedGpuMemory] for item in running]


def _fabric(pynvml: Any, handle: Any) -> int | None:
    """State of the fabric that joins this GPU to others (``nvmlGpuFabricState_t``); None where NVML knows of none."""
    try:
        information = pynvml.c_nvmlGpuFabricInfo_t()
        pynvml.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(information))
    except (AttributeError, pynvml.NVMLError):  # an older binding or driver
        return None
    return int(information.state)


def _mig(pynvml: Any, handle: Any) -> list[str]:
    """UUIDs of the MIG devices of a GPU, by which CUDA_VISIBLE_DEVICES names them."""
    count = _value(pynvml, pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    devices = (_value(pynvml, pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index) for index in range(count))
    uuids = (_value(pynvml, pynvml.nvmlDeviceGetUUID, device) for device in devices if device is not None)
    return [uuid for uuid in uuids if uuid is not None]


if __name__ == "__main__":
    json.dump(collect(health="--health" in sys.argv[1:]), sys.stdout)
