"""Driver and GPUs: from NVML, else from the kernel's files, else from nvidia-smi."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from envmedic.model.facts import Gpu
from envmedic.probe.elf.loader import Search
from envmedic.probe.machine import visibility
from envmedic.probe.readable import names, read_text
from envmedic.proc import ask
from envmedic.proc.plain import collect

NVML_TIMEOUT_S = 30.0
SMI_TIMEOUT_S = 30.0
_SMI_FIELDS = "index,name,uuid,compute_cap,memory.total,pci.bus_id,driver_version"
_MODULE_VERSION = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)")
_MEBIBYTE = 1024 * 1024
_FABRIC_STATES = {1: "not started", 2: "in progress", 3: "completed"}
"""``nvmlGpuFabricState_t``; 0 is a GPU without a fabric."""
_NVML = "libnvidia-ml.so.1"
NO_ANSWER = "NVML's process gave no answer"
_NO_NVML = "NVML Shared Library Not Found"
"""As pynvml says it."""
_NOT_ALLOWED = "Insufficient Permissions"
"""NVML's message for GPUs that this process may not use."""


class GpuUse(msgspec.Struct, frozen=True):
    """How much of a GPU other programs leave at this moment."""

    free_bytes: int
    total_bytes: int
    processes: tuple[tuple[int, int | None], ...] = ()
    """Process id and bytes of each program; no bytes where the driver does not tell."""


class Driver(msgspec.Struct, frozen=True):
    """Facts about driver and GPUs."""

    version: str | None = None
    cuda: str | None = None
    source: str | None = None
    nvml_error: str | None = None
    gpus: tuple[Gpu, ...] = ()
    lost: tuple[str, ...] = ()
    """GPUs that the driver lists and cannot reach, each with its error."""
    fabric: str | None = None
    """The least advanced state of the fabric among the GPUs; None where none of them has one."""
    mig: dict[str, int] = msgspec.field(default_factory=dict)
    """UUID of each MIG device → index of its GPU."""
    uses: dict[int, GpuUse] = msgspec.field(default_factory=dict)
    """By the index of the GPU, where NVML tells; no fact of the host, since it changes every moment."""


def observe(variables: Mapping[str, str]) -> Driver:
    """Ask NVML or its substitutes, then apply the variables that hide GPUs or overrule the driver."""
    return overruled(masked(_asked(Search.here(variables)), variables), variables)


def _asked(search: Search) -> Driver:
    # NVML first: only it knows capabilities, MIG devices and the fabric. The kernel files remain when a container
    # lacks the library or NVML reports a version mismatch, and nvidia-smi starts last since it takes seconds
    found = from_nvml() if _has_nvml(search) else Driver(nvml_error=_NO_NVML)
    if found.version is None:
        kernel = from_kernel(Path("/"))
        found = msgspec.structs.replace(
            found, version=kernel.version, source=kernel.source, gpus=found.gpus or kernel.gpus
        )
    needs_smi = found.version is None or any(gpu.compute_capability is None for gpu in found.gpus)
    smi = shutil.which("nvidia-smi") if needs_smi else None
    if smi is None:
        return found
    told = from_smi(smi)
    return msgspec.structs.replace(
        found,
        version=found.version or told.version,
        source=found.source or told.source,
        gpus=told.gpus or found.gpus,
    )


def _has_nvml(search: Search) -> bool:
    """Whether the loader would find NVML's library; True when there is no loader cache to consult.

    On a host without it, the start of the child process would take a tenth of a diagnosis.
    """
    folders = (*search.library_path, *search.defaults)
    return not search.cache or _NVML in search.cache or any(_NVML in names(Path(folder)) for folder in folders)


def from_nvml() -> Driver:
    """NVML's answer, from a child process; `Driver.nvml_error` says what failed."""
    answer = ask_nvml()
    return Driver(nvml_error=answer) if isinstance(answer, str) else of_nvml(answer)


def ask_nvml(*options: str) -> dict[str, Any] | str:
    """The answer of `nvml_child` in a process of its own, or why there is none."""
    # -I ignores PYTHONPATH and the user's site: a broken module there must not look like a broken driver
    script = Path(__file__).with_name("nvml_child.py")
    try:
        result = ask([sys.executable, "-I", "-B", str(script), *options], timeout_s=NVML_TIMEOUT_S)
    except OSError as error:
        return str(error)
    if result.timed_out:
        return f"NVML gave no answer within {NVML_TIMEOUT_S:.0f} s"
    if result.returncode != 0:
        end = (result.stderr.strip().splitlines() or [""])[-1]
        return f"NVML ended its process with status {result.returncode} {end}".strip()
    return parse_nvml(result.stdout)


def parse_nvml(text: str) -> dict[str, Any] | str:
    """Read the JSON object of the child process."""
    try:
        answer = json.loads(text)
    except ValueError:
        return NO_ANSWER
    return answer if isinstance(answer, dict) else NO_ANSWER


def of_nvml(answer: dict[str, Any]) -> Driver:
    """Turn the object of the child process into facts."""
    listed: list[dict[str, Any]] = answer.get("gpus") or []
    lost = [f"GPU {item['index']}: {item['error']}" for item in listed if item.get("error")]
    fabric = [item["fabric"] for item in listed if item.get("fabric") in _FABRIC_STATES]
    version = answer.get("driver")
    return Driver(
        version=version,
        cuda=_cuda_version(answer.get("cuda")),
        source="nvml" if version else None,
        nvml_error=answer.get("error") or "; ".join(lost) or None,
        gpus=tuple(_nvml_gpu(item) for item in listed if not item.get("error")),
        # a GPU of another container or user is not broken, only out of this process's reach
        lost=tuple(text for text in lost if _NOT_ALLOWED not in text),
        fabric=_FABRIC_STATES[min(fabric)] if fabric else None,
        mig={uuid: item["index"] for item in listed for uuid in item.get("mig", ())},
        uses={item["index"]: _use(item) for item in listed if item.get("free") is not None and item.get("memory")},
    )


def _use(item: dict[str, Any]) -> GpuUse:
    processes = tuple((int(pid), used) for pid, used in item.get("processes") or ())
    return GpuUse(item["free"], item["memory"], processes)


def _cuda_version(number: int | None) -> str | None:
    """``12.4`` for NVML's 12040."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def _nvml_gpu(item: dict[str, Any]) -> Gpu:
    capability = item.get("capability")
    return Gpu(
        index=item["index"],
        name=item.get("name") or "unknown",
        uuid=item.get("uuid"),
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        memory_bytes=item.get("memory"),
        pci_bus_id=item.get("pci"),
    )


def from_kernel(root: Path) -> Driver:
    """The kernel module's files under /sys and /proc (`root`: / except in tests). They state no compute capability."""
    loaded = (read_text(root / "sys/module/nvidia/version") or "").strip()
    described = read_text(root / "proc/driver/nvidia/version") or ""
    match = _MODULE_VERSION.search(described)
    version, source = (loaded, "/sys/module/nvidia/version") if loaded else (None, None)
    if version is None and match is not None:
        version, source = match[1], "/proc/driver/nvidia/version"
    folder = root / "proc/driver/nvidia/gpus"
    described_gpus = [read_text(folder / name / "information") or "" for name in names(folder)]
    gpus = tuple(parse_information(index, text) for index, text in enumerate(described_gpus))
    return Driver(version=version, source=source, gpus=gpus)


def parse_information(index: int, text: str) -> Gpu:
    """One GPU by its ``/proc/driver/nvidia/gpus/*/information``."""
    pairs = (line.partition(":") for line in text.splitlines())
    stated = {key.strip(): value.strip() for key, _, value in pairs}
    uuid = stated.get("GPU UUID")
    return Gpu(
        index=index,
        name=stated.get("Model") or "unknown",
        # the kernel module prints GPU-????????-… until the GPU was initialised for the first time
        uuid=None if uuid is None or "?" in uuid else uuid,
        pci_bus_id=stated.get("Bus Location"),
    )


def from_smi(program: str) -> Driver:
    """nvidia-smi's answer; an empty one where it fails."""
    try:
        query = [program, f"--query-gpu={_SMI_FIELDS}", "--format=csv,noheader,nounits"]
        result = collect(query, timeout_s=SMI_TIMEOUT_S)
    except OSError:
        return Driver()
    return parse_smi(result.stdout) if result.returncode == 0 else Driver()


def parse_smi(text: str) -> Driver:
    """Read the comma-separated lines of nvidia-smi (fields as asked for by `from_smi`)."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    rows = [row for row in rows if len(row) == len(_SMI_FIELDS.split(",")) and row[0].isdecimal()]
    gpus = tuple(
        Gpu(
            index=int(row[0]),
            name=row[1],
            uuid=row[2] or None,
            compute_capability=row[3] if re.fullmatch(r"\d+\.\d+", row[3]) else None,
            memory_bytes=int(row[4]) * _MEBIBYTE if row[4].isdecimal() else None,
            pci_bus_id=row[5] or None,
        )
        for row in rows
    )
    return Driver(version=rows[0][6], source="nvidia-smi", gpus=gpus) if rows else Driver()


def masked(found: Driver, variables: Mapping[str, str]) -> Driver:
    """Mark the GPUs that CUDA_VISIBLE_DEVICES hides."""
    visible = visibility.visible_indices(variables.get("CUDA_VISIBLE_DEVICES"), found.gpus, found.mig)
    gpus = tuple(msgspec.structs.replace(gpu, visible=gpu.index in visible) for gpu in found.gpus)
    return msgspec.structs.replace(found, gpus=gpus)


def overruled(found: Driver, variables: Mapping[str, str]) -> Driver:
    """Apply UV_CUDA_DRIVER_VERSION (a driver's version) and CONDA_OVERRIDE_CUDA (a CUDA version; empty: none)."""
    conda = variables.get("CONDA_OVERRIDE_CUDA")
    if conda is not None and not conda.strip():
        found = msgspec.structs.replace(found, version=None, cuda=None, source="CONDA_OVERRIDE_CUDA")
    elif conda is not None:
        found = msgspec.structs.replace(found, cuda=conda.strip(), source=found.source or "CONDA_OVERRIDE_CUDA")
    stated = (variables.get("UV_CUDA_DRIVER_VERSION") or "").strip()
    if stated:
        cuda = found.cuda if conda else None
        found = msgspec.structs.replace(found, version=stated, cuda=cuda, source="UV_CUDA_DRIVER_VERSION")
    return found
