"""Effects of activation on the variables of builds, and the origin of the shell's own variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from envmedic import activation, shell
from envmedic.model.facts import KeptVariable
from envmedic.probe import layout
from envmedic.probe.readable import names, read_bytes, read_text

NAMES = frozenset({
    "CC", "CXX", "CUDAHOSTCXX", "CUDA_HOME", "CUDA_PATH", "FORCE_CUDA", "LD_LIBRARY_PATH", "LIBRARY_PATH", "MAX_JOBS",
    "NVCC_PREPEND_FLAGS", "PIP_NO_BUILD_ISOLATION", "TCNN_CUDA_ARCHITECTURES", "TORCH_CUDA_ARCH_LIST",
    "UV_NO_BUILD_ISOLATION",
})  # fmt: skip
"""Variables that decide how extensions are built."""

_SHELL_FILES = (
    ".bashrc", ".bash_profile", ".bash_login", ".profile", ".bash_aliases", ".zshrc", ".zshenv", ".zprofile",
)  # fmt: skip
_SYSTEM_FILES = ("etc/environment", "etc/profile", "etc/bash.bashrc", "etc/bashrc")


def assignments(prefix: Path, variables: Mapping[str, str]) -> tuple[KeptVariable, ...]:
    """What the activation scripts (for sh) set and unset of `NAMES`, in the order in which they do.

    `variables` are those of the shell, for expansions. What a command substitution would give is left out.
    """
    known = {**variables, "VIRTUAL_ENV": str(prefix), "CONDA_PREFIX": str(prefix)}
    found: list[KeptVariable] = []
    for script in activation.scripts(prefix):
        for name, value, number in shell.statements(read_text(script, shell.LARGEST) or "", known, NAMES):
            where = f"{layout.relative(script, prefix)}:{number}"
            found.append(KeptVariable(name=name, value=value, source=where))
    return tuple(found)


def origin(name: str, value: str, variables: Mapping[str, str], root: Path = Path("/")) -> str:
    """Where the shell's `name` comes from: ``process``, with the file and line, or the image, that sets it."""
    home = Path(variables.get("HOME") or "/nonexistent")
    profile = root / "etc" / "profile.d"
    files = [
        *(home / item for item in _SHELL_FILES),
        *(root / item for item in _SYSTEM_FILES),
        *(profile / item for item in names(profile)),
    ]
    for file in files:
        known = dict(variables)
        lines = [
            number
            for item, found, number in shell.statements(
                read_text(file, shell.LARGEST, follow=True) or "", known, {name}
            )
            if (item, found) == (name, value)
        ]
        if lines:
            return f"process ({file}:{lines[-1]})"
    # in a container, process 1 has the variables of the image; elsewhere those of the system manager
    first = read_bytes(root / "proc/1/environ") or b""
    if os.fsencode(f"{name}={value}") in first.split(b"\0"):
        return "process (set for the whole container or system)"
    return "process"
