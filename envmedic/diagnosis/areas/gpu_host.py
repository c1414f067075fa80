"""Facts on the host's driver and GPUs, and whether they serve torch's CUDA."""

from __future__ import annotations

from envmedic.compat.torch_family.rules import minimum_driver
from envmedic.compat.versions import dotted
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Facts, Host, TorchBuild

_MISMATCH = "version mismatch"
"""Part of NVML's message when libraries and kernel module differ (``NVML_ERROR_LIB_RM_VERSION_MISMATCH``)."""


def derive(facts: Facts) -> Derived:
    """The facts of ``host.*`` on GPUs, and whether the driver is new enough for torch."""
    host = facts.host
    torch = facts.environment.torch if facts.environment is not None else None
    return _driver(host) | _reach(host) | (_sufficient(host, torch) if torch is not None else {})


def _driver(host: Host) -> Derived:
    """Facts from NVML; none without NVML."""
    mismatch = _MISMATCH in (host.nvml_error or "").lower()
    answered = host.driver_source == "nvml"
    derived: Derived = {}
    # False only where NVML answered: without it the two versions were never compared
    if mismatch or answered:
        derived["host.driver-mismatch"] = mismatch
    if host.driver_version is not None and host.driver_libraries is not None:
        derived["host.driver-libraries"] = f"kernel module {host.driver_version}, libraries {host.driver_libraries}"
    if answered:
        derived["host.gpus-lost"] = host.lost_gpus
        derived["host.fabric"] = host.fabric or "none"
    return derived


def _reach(host: Host) -> Derived:
    """Whether processes can use the host's GPUs; nothing on a host without any."""
    derived: Derived = {}
    if host.gpus:
        derived["host.gpus-hidden"] = not host.visible_gpus()
    # a container may hide the PCI bus, while the kernel's driver shows through /proc: then the host has GPUs too
    elif host.pci_gpus or (host.container and host.driver_version):
        derived["host.gpu-state"] = _state(host)
        derived["host.container-without-gpu" if host.container else "host.gpu-unreachable"] = True
    return derived


def _state(host: Host) -> str:
    bus = f"{host.pci_gpus} on the PCI bus" if host.pci_gpus is not None else "the PCI bus cannot be read"
    driver = f"kernel module {host.driver_version}" if host.driver_version else "no kernel module of the driver"
    files = f"in /dev {', '.join(host.device_files)}" if host.device_files else "no device file"
    return f"{bus}, {driver}, {files}" + (f", NVML says: {host.nvml_error}" if host.nvml_error else "")


def _sufficient(host: Host, torch: TorchBuild) -> Derived:
    """The oldest driver for torch's CUDA, and whether this host's is new enough."""
    needed = minimum_driver(torch.cuda)[0] if torch.cuda is not None else None
    if needed is None:
        return {}
    derived: Derived = {"torch.driver-needed": needed}
    # libraries newer than the kernel module are CUDA's forward compatibility package, which counts as that driver
    known = [dotted(text) for text in (host.driver_version, host.driver_libraries) if text]
    if host.driver_version is not None:
        derived["driver.sufficient-for-torch"] = max(known) >= dotted(needed)
    return derived
