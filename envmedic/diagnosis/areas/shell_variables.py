"""Facts on variables of the shell, with the exact line that mends each."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from envmedic.diagnosis.derived import Derived
from envmedic.diagnosis.jit_caches import VARIABLES as CACHES
from envmedic.model.facts import Environment, Facts, Gpu, Host

_INTERFACES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
_ALLOCATORS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
_PRECISION = ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")
_NO_DEVICE: Final = frozenset({"", "none", "void", "nodevfiles"})
"""Entries of CUDA_VISIBLE_DEVICES by which people and job schedulers hide GPUs on purpose; so does a negative number."""


def derive(facts: Facts) -> Derived:
    """The facts of ``shell.*``; variables that the environment itself sets are the environment's, and left out."""
    environment = facts.environment
    own = {item.name for item in environment.variables} if environment is not None else set()
    variables = {item.name: item.value for item in facts.host.variables if item.name not in own}
    return {
        **_stubs(facts.host, variables),
        **(_cuda(environment, variables) if environment is not None else {}),
        **_preloads(facts.host, variables),
        **_interface(facts.host, variables),
        **_set("shell.allocator", _ALLOCATORS, variables),
        **_set("shell.precision", [name for name in _PRECISION if variables.get(name) != "0"], variables),
        **_hidden(facts.host, variables),
        **_unknown_devices(facts.host, variables),
        "shell.caches": tuple(f"{name}={variables[name]}" for name in CACHES if variables.get(name)),
    }


def _library_path(variables: dict[str, str]) -> list[str]:
    return [item for item in re.split("[:;]", variables.get("LD_LIBRARY_PATH", "")) if item]


def _preloaded(variables: dict[str, str]) -> list[str]:
    return [item for item in re.split(r"[:\s]+", variables.get("LD_PRELOAD", "")) if item]


def _without(name: str, entries: Iterable[str], going: Collection[str]) -> str | None:
    """The line that takes entries out of a list of paths and keeps the others; None where none is to go."""
    if not going:
        return None
    left = ":".join(item for item in entries if item not in going)
    return f"export {name}={shlex.quote(left)}" if left else f"unset {name}"


def _stubs(host: Host, variables: dict[str, str]) -> Derived:
    entries = _library_path(variables)
    stubs = tuple(item for item in entries if item in host.stub_drivers)
    return {"shell.stubs": stubs, "shell.stubs-line": _without("LD_LIBRARY_PATH", entries, stubs)}


def _cuda(environment: Environment, variables: dict[str, str]) -> Derived:
    """The line without what brings CUDA libraries in the place of the environment's own."""
    entries, preloaded = _library_path(variables), _preloaded(variables)
    places = {
        posixpath.normpath(posixpath.join(environment.prefix, item.path))
        for item in environment.cuda_libraries
        if item.instead_of is not None and item.path is not None
    }
    # the loader searches for an entry of LD_PRELOAD without a slash by its name
    first = {
        entry: {place for place in places if posixpath.normpath(entry) in {place, posixpath.basename(place)}}
        for entry in preloaded
    }
    folders = {posixpath.dirname(place) for place in places.difference(*first.values())}
    lines = (
        _without("LD_PRELOAD", preloaded, [entry for entry, found in first.items() if found]),
        _without("LD_LIBRARY_PATH", entries, [entry for entry in entries if posixpath.normpath(entry) in folders]),
    )
    return {"shell.cuda-line": " && ".join(line for line in lines if line is not None) or None}


def _preloads(host: Host, variables: dict[str, str]) -> Derived:
    entries = _preloaded(variables)
    lost = tuple(item for item in entries if item in host.lost_preloads)
    return {"shell.preloads-lost": lost, "shell.preloads-line": _without("LD_PRELOAD", entries, lost)}


def _interface(host: Host, variables: dict[str, str]) -> Derived:
    """Nothing where the interfaces of the host are not known, as in a facts file of an earlier version."""
    if not host.network_interfaces:
        return {}
    for name in _INTERFACES:
        value = variables.get(name)
        if value and not _names_one(value, host.network_interfaces):
            return {"shell.interface-unknown": f"{name}={value}", "shell.interface-line": f"unset {name}"}
    return {"shell.interface-unknown": None, "shell.interface-line": None}


def _names_one(value: str, interfaces: tuple[str, ...]) -> bool:
    """Whether a list of interfaces in NCCL's form leaves one: prefixes, after ``=`` whole names, after ``^`` all others."""
    excluded, exact = value.startswith("^"), value.lstrip("^").startswith("=")
    wanted = [item.strip() for item in value.lstrip("^=").split(",") if item.strip()]
    # a name may have a port or the address of a subnet behind a colon
    hit = [
        any(name == item.partition(":")[0] if exact else name.startswith(item.partition(":")[0]) for item in wanted)
        for name in interfaces
    ]
    return not all(hit) if excluded else any(hit)


def _set(fact: str, names: Sequence[str], variables: dict[str, str]) -> Derived:
    """The first of the variables that is set, and the line that unsets it."""
    name = next((item for item in names if variables.get(item)), None)
    if name is None:
        return {fact: None, f"{fact}-line": None}
    return {fact: f"{name}={variables[name]}", f"{fact}-line": f"unset {name}"}


def _hidden(host: Host, variables: dict[str, str]) -> Derived:
    """Entries of CUDA_VISIBLE_DEVICES that name no GPU, and GPUs behind them that are left out."""
    setting, visible = variables.get("CUDA_VISIBLE_DEVICES"), host.visible_gpus()
    if setting is None or not host.gpus or len(visible) == len(host.gpus):
        return {"shell.gpus-hidden": None, "shell.gpus-line": None}
    named = len([item for item in setting.split(",") if item.strip()])
    if visible and named == len(visible):
        return {"shell.gpus-hidden": None, "shell.gpus-line": None}  # a choice of the user's
    told = f"CUDA_VISIBLE_DEVICES={setting} names {'no GPU' if not visible else f'{len(visible)} of {len(host.gpus)} GPUs'}"
    return {"shell.gpus-hidden": f"{told}: {_known(host)}", "shell.gpus-line": "unset CUDA_VISIBLE_DEVICES"}


def _known(host: Host) -> str:
    known = ", ".join(str(gpu.index) for gpu in host.gpus)
    return f"there is only {known}" if len(host.gpus) == 1 else f"there are {known}"


def _unknown_devices(host: Host, variables: dict[str, str]) -> Derived:
    """The entries of CUDA_VISIBLE_DEVICES that no GPU has; None where the GPUs are hidden on purpose."""
    setting = variables.get("CUDA_VISIBLE_DEVICES")
    if setting is None or not host.gpus:
        return {"shell.devices-unknown": None, "shell.devices-line": None}
    unknown: list[str] = []
    for entry in map(str.strip, setting.split(",")):
        if entry.startswith("-") or entry.lower() in _NO_DEVICE:
            break  # all behind it is hidden, as it says
        if not _names_gpu(entry, host.gpus):
            unknown.append(entry)
    if not unknown:
        return {"shell.devices-unknown": None, "shell.devices-line": None}
    told = f"CUDA_VISIBLE_DEVICES={setting} names {', '.join(unknown)}, which no GPU of this host is: {_known(host)}"
    return {"shell.devices-unknown": told, "shell.devices-line": "unset CUDA_VISIBLE_DEVICES"}


def _names_gpu(entry: str, gpus: Sequence[Gpu]) -> bool:
    number = re.match(r"\+?\d+", entry)  # CUDA reads as far as there are digits
    if number is not None:
        return any(gpu.index == int(number[0]) for gpu in gpus)
    # parts of GPUs (MIG) are not among the facts
    return entry.startswith("MIG-") or any(gpu.uuid is None or gpu.uuid.startswith(entry) for gpu in gpus)
