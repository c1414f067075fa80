"""Run as a script in a child process: asks NVML about driver and GPUs and prints one JSON object.

A process of its own, since NVML can hang on a sick driver or end the process that uses it.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from typing import Any


def collect() -> dict[str, Any]:
    """Driver and GPUs; ``error`` where NVML says why it cannot tell."""
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
        answer["gpus"] = [_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        answer["error"] = str(error)
    return answer


def _value(pynvml: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Answer of one query; None where this device or driver does not support it."""
    try:
        value = function(*arguments)
    except pynvml.NVMLError:
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _gpu(pynvml: Any, index: int) -> dict[str, Any]:
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
    }


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
    json.dump(collect(), sys.stdout)
