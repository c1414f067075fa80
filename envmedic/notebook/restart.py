"""Whether the kernel must be restarted, and when. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from envmedic.model.facts import Distribution
from envmedic.model.findings import Diagnosis
from envmedic.render.text import Line, joined, part

# Source: CUDA Runtime API, error handling: after these errors "the process must be terminated and relaunched"
_LOST_CONTEXT = re.compile(
    r"CUDA (?:driver )?error: (?:device-side assert triggered|an illegal memory access was encountered"
    r"|unspecified launch failure|misaligned address|an illegal instruction was encountered|hardware stack error"
    r"|invalid program counter|operation not supported on global/shared address space"
    r"|the launch timed out and was terminated)"
)


class Stale(NamedTuple):
    """A package that the kernel has loaded in another version than the one that is installed now."""

    name: str
    loaded: str
    installed: str


def stale_modules(
    distributions: Iterable[Distribution], modules: Mapping[str, str], changed: Mapping[str, float], started: float
) -> tuple[Stale, ...]:
    """Return what was installed anew after the kernel has loaded it.

    `changed` has the time at which a distribution's metadata came to be, by its path; `started` is when the kernel
    started. A module may give another version than its metadata all along: only new metadata tells of a change.
    """
    return tuple(
        Stale(item.name, modules[name], item.version)
        for item in distributions
        if changed.get(item.metadata_path, 0.0) > started
        for name in item.import_names
        if name in modules and modules[name].partition("+")[0] != item.public
    )


def kernel_lines(diagnosis: Diagnosis, stale: tuple[Stale, ...], text: str, *, repaired_by_command: bool) -> list[Line]:
    """One sentence on the kernel, the most urgent one."""
    if stale:
        told = ", ".join(f"{item.name} {item.loaded} is loaded and {item.installed} installed" for item in stale[:3])
        return _lines("Restart the kernel first, and run the cell again", f": {told}. The error may be of the mixture")
    if _LOST_CONTEXT.search(text):
        return _lines("Restart the kernel", ": after this CUDA error a process can use the GPU no more")
    if repaired_by_command:
        return _lines(
            "Shut the kernel down before the repair, and start it after",
            ": it runs in this environment, and keeps what it has loaded",
        )
    if diagnosis.verdict in {"env", "host", "shell"}:
        return _lines(
            "Restart the kernel after the change", ": a running process keeps its variables and what it has loaded"
        )
    return [joined(part("The kernel need not be restarted", "dim"))]


def _lines(what: str, why: str) -> list[Line]:
    return [joined(part(what, "warn"), why)]
