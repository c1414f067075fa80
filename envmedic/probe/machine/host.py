"""Observation of the machine: driver, GPUs, toolkits, compilers, system and relevant variables."""

from __future__ import annotations

import os
import platform
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from envmedic.model.facts import Host, Variable
from envmedic.probe.elf import ldcache
from envmedic.probe.elf.loader import Search
from envmedic.probe.machine import driver, gpu_host, toolchain
from envmedic.probe.prefix import shell_scripts
from envmedic.probe.readable import is_file, names, read_text
from envmedic.probe.text import encodable
from envmedic.redact import redact_variable

_PREFIXES = (
    "CUDA_", "CUDNN_", "TORCH_", "TORCHVISION_", "TORCHAUDIO_", "PYTORCH_", "NCCL_", "NVIDIA_", "NVCC_", "CONDA_",
    "MAMBA_", "PIP_", "UV_", "PYTHON", "TCNN_", "LD_", "OMP_", "KMP_", "MKL_", "CMAKE_", "GLOO_", "TRITON_",
    "TORCHINDUCTOR_",
)  # fmt: skip
_NAMES = frozenset({
    "FORCE_CUDA", "VIRTUAL_ENV", "CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LIBRARY_PATH", "CPATH",
    "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "PATH", "MAX_JOBS", "LC_ALL", "LANG", "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
})  # fmt: skip
_TRACED = frozenset({"CUDA_HOME", "CUDA_PATH", "TORCH_CUDA_ARCH_LIST", "TCNN_CUDA_ARCHITECTURES", "LIBRARY_PATH"})
"""Variables whose origin is searched in shell files; a search for every variable would be slow."""
_CGROUP = re.compile(r"docker|kubepods|containerd|libpod|lxc")
_CGROUP_NAMES = {"kubepods": "kubernetes", "libpod": "podman"}


def observe_host(variables: Mapping[str, str] | None = None) -> Host:
    """Observe this machine; `variables` defaults to this process's environment. Never raises for what is missing."""
    given = os.environ if variables is None else variables
    found = driver.observe(given)
    root = Path("/")
    hardware = gpu_host.observe(root, ldcache.system())
    observed = Host(
        system=sys.platform,
        machine=platform.machine(),
        kernel=platform.release(),
        distribution=distribution(read_text(root / "etc/os-release") or read_text(root / "usr/lib/os-release") or ""),
        glibc=glibc(),
        driver_version=found.version,
        driver_cuda=found.cuda,
        driver_source=found.source,
        driver_libraries=hardware.libraries,
        nvml_error=found.nvml_error,
        lost_gpus=found.lost,
        fabric=found.fabric,
        pci_gpus=hardware.pci_gpus,
        device_files=hardware.device_files,
        gpus=found.gpus,
        toolkits=toolchain.toolkits(given),
        compilers=toolchain.compilers(given),
        variables=relevant(given),
        libcuda=toolchain.libcuda(),
        network_interfaces=network_interfaces(),
        stub_drivers=stub_drivers(given),
        lost_preloads=lost_preloads(given),
        container=container(root, given),
        wsl=is_wsl(platform.release()),
    )
    return encodable(observed)


def relevant(variables: Mapping[str, str]) -> tuple[Variable, ...]:
    """Variables that take part in building, loading and selecting, sorted, without their secrets."""
    chosen = sorted(name for name in variables if name in _NAMES or name.startswith(_PREFIXES))
    return tuple(
        Variable(name=name, value=redact_variable(name, variables[name]), source=_source(name, variables))
        for name in chosen
    )


def _source(name: str, variables: Mapping[str, str]) -> str:
    return shell_scripts.origin(name, variables[name], variables) if name in _TRACED else "process"


def network_interfaces() -> tuple[str, ...]:
    """Names of the network interfaces, sorted; none where the kernel does not tell."""
    try:
        return tuple(sorted(name for _, name in socket.if_nameindex()))
    except OSError:
        return ()


def stub_drivers(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Entries of LD_LIBRARY_PATH whose libcuda.so.1 is the stand-in of a CUDA toolkit."""
    entries = [item for item in re.split("[:;]", variables.get("LD_LIBRARY_PATH", "")) if item]
    return tuple(
        item
        for item in dict.fromkeys(entries)
        if "libcuda.so.1" in names(Path(item)) and "stubs" in Path(os.path.realpath(f"{item}/libcuda.so.1")).parts
    )


def lost_preloads(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Entries of LD_PRELOAD that lead to no file, by the loader's own search."""
    if not variables.get("LD_PRELOAD"):
        return ()
    search = Search.here(variables)
    folders = (*search.library_path, *search.defaults)

    def found(entry: str) -> bool:
        if "$" in entry:  # only the loader knows what $LIB and $PLATFORM stand for
            return True
        if "/" in entry:
            return is_file(Path(entry))
        # a system without the loader's cache (musl) has directories of its own
        return not search.cache or entry in search.cache or any(is_file(Path(folder, entry)) for folder in folders)

    return tuple(entry for entry in dict.fromkeys(search.preload) if not found(entry))


def distribution(os_release: str) -> str | None:
    """PRETTY_NAME of os-release."""
    match = re.search(r"^PRETTY_NAME=(['\"]?)(.*)\1$", os_release, re.MULTILINE)
    return match[2] if match else None


def glibc() -> str | None:
    """Version of the C library; None where it is not glibc."""
    try:
        stated = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None
    return stated.removeprefix("glibc ") if stated else None


def container(root: Path, variables: Mapping[str, str]) -> str | None:
    """Container technology in which this process runs, None outside of one. `root` is / but in tests."""
    if variables.get("APPTAINER_NAME") or variables.get("SINGULARITY_NAME"):
        return "apptainer"
    if variables.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    # the runtimes' own marks come before cgroups: cgroup v2 shows a bare "0::/" inside most containers
    if ".dockerenv" in names(root):
        return "docker"
    if ".containerenv" in names(root / "run"):
        return "podman"
    stated = (read_text(root / "run/systemd/container") or "").strip()
    match = _CGROUP.search(read_text(root / "proc/1/cgroup") or "")
    return stated or (_CGROUP_NAMES.get(match[0], match[0]) if match else None)


def is_wsl(kernel: str) -> bool:
    """Whether the kernel is that of the Windows Subsystem for Linux."""
    return "microsoft" in kernel.lower()
