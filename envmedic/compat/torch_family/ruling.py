"""Rules by name, and rulings: the results of one rule for one candidate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

RULES: Mapping[str, str] = MappingProxyType({
    "requirement": "a set holds the versions that were asked for",
    "platform": "torch publishes CUDA wheels that envmedic handles for Linux on x86_64 and aarch64 only",
    "torch-installed": "keeping torch needs an installed torch",
    "torch-known": "a set is proposed for releases that the data or their own metadata describe",
    "backend": "a ROCm or XPU build is never exchanged for a CUDA build",
    "variant-published": "a build is proposed only where its publication was verified",
    "python-wheel": "a wheel exists for the interpreter, its threading model and the machine",
    "wheel-tag": "the host's glibc is at least the one that the wheel's platform tag names",
    "gpu-required": "a set that must run on GPUs, or that replaces a CUDA build, is no CPU build",
    "driver-minimum": "the driver is at least the oldest one on which programs of that CUDA version start",
    "gpu-coverage": "every visible GPU runs the machine code of the build, or its PTX if the driver can compile it",
    "nvrtc-coverage": "the NVRTC of the build's CUDA version knows every visible GPU",
    "torchvision-pair": "a torchvision goes with the torch release that it was built for",
    "torchaudio-pair": "a torchaudio goes with the torch release that it was built for",
    "yanked": "a release that its authors withdrew is never proposed",
    "companion-variant": "torch and its companions are built for the same CUDA version, or all for the CPU",
    "triton-requirement": "triton is the one that the torch release asks for",
    "torch-missing": "a companion needs an installed torch",
})  # fmt: skip
"""Stable id of each rule with its reason."""

Sources = str | Iterable[str]


def cite(sources: Sources) -> str:
    """Join sources into one line."""
    return sources if isinstance(sources, str) else "; ".join(dict.fromkeys(sources))


class Ruling(msgspec.Struct, frozen=True):
    """The result of one rule for one candidate."""

    rule: str
    ok: bool
    reason: str
    source: str = ""
    cause: str = ""
    """Key that separates rulings of the same rule when rejections are grouped."""

    def sentence(self) -> str:
        """One line with rule and source, for the reasons of a proposed set."""
        return f"{self.rule}: {self.reason}" + (f" [{self.source}]" if self.source else "")


def passed(rule: str, reason: str, sources: Sources = "") -> Ruling:
    """Return the ruling for a rule that holds, or that could not be checked for the stated reason."""
    return Ruling(rule=rule, ok=True, reason=reason, source=cite(sources))


def broken(rule: str, reason: str, sources: Sources = "", *, cause: str = "") -> Ruling:
    """Return the ruling for a rule that is violated, or that cannot be shown to hold where it must."""
    return Ruling(rule=rule, ok=False, reason=reason, source=cite(sources), cause=cause)
