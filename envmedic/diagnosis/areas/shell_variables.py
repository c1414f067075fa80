"""Facts on variables of the shell, with the exact line that mends each."""

from __future__ import annotations

import re
import shlex

from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Facts, Host

_INTERFACES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
_ALLOCATORS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")


def derive(facts: Facts) -> Derived:
    """The facts of ``shell.*``; variables that the environment itself sets are the environment's, and left out."""
    environment = facts.environment
    own = {item.name for item in environment.variables} if environment is not None else set()
    variables = {item.name: item.value for item in facts.host.variables if item.name not in own}
    return {
        **_stubs(facts.host, variables),
        **_interface(facts.host, variables),
        **_allocator(variables),
        **_hidden(facts.host, variables),
    }


def _stubs(host: Host, variables: dict[str, str]) -> Derived:
    entries = [item for item in re.split("[:;]", variables.get("LD_LIBRARY_PATH", "")) if item]
    stubs = tuple(item for item in entries if item in host.stub_drivers)
    left = ":".join(item for item in entries if item not in stubs)
    line = f"export LD_LIBRARY_PATH={shlex.quote(left)}" if left else "unset LD_LIBRARY_PATH"
    return {"shell.stubs": stubs, "shell.stubs-line": line if stubs else None}


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


def _allocator(variables: dict[str, str]) -> Derived:
    name = next((item for item in _ALLOCATORS if variables.get(item)), None)
    if name is None:
        return {"shell.allocator": None, "shell.allocator-line": None}
    return {"shell.allocator": f"{name}={variables[name]}", "shell.allocator-line": f"unset {name}"}


def _hidden(host: Host, variables: dict[str, str]) -> Derived:
    """Entries of CUDA_VISIBLE_DEVICES that name no GPU, and GPUs behind them that are left out."""
    setting, visible = variables.get("CUDA_VISIBLE_DEVICES"), host.visible_gpus()
    if setting is None or not host.gpus or len(visible) == len(host.gpus):
        return {"shell.gpus-hidden": None, "shell.gpus-line": None}
    known = ", ".join(str(gpu.index) for gpu in host.gpus)
    there = f"there is only {known}" if len(host.gpus) == 1 else f"there are {known}"
    named = len([item for item in setting.split(",") if item.strip()])
    if visible and named == len(visible):
        return {"shell.gpus-hidden": None, "shell.gpus-line": None}  # a choice of the user's
    told = f"CUDA_VISIBLE_DEVICES={setting} names {'no GPU' if not visible else f'{len(visible)} of {len(host.gpus)} GPUs'}: {there}"
    return {"shell.gpus-hidden": told, "shell.gpus-line": "unset CUDA_VISIBLE_DEVICES"}
