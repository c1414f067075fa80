"""The host and an environment as cards."""

from __future__ import annotations

from envmedic.errors import EnvmedicError
from envmedic.model.facts import Distribution, Environment, Host
from envmedic.render.cells import pairs
from envmedic.render.documents.facts import family, host_rows
from envmedic.render.text import Line, joined, line, part

_FIRST = ("gpu", "driver")
"""Rows in the order of interest."""


def host_card(host: Host | None, error: EnvmedicError | None) -> list[Line]:
    """GPUs, driver and newest CUDA, then the system, toolkits, compilers and the variables that matter."""
    if error is not None:
        return [line(f"! {error.summary}", "bad")]
    if host is None:
        return [line("… reading the host", "dim")]
    # the sort is stable: all other rows keep their order
    rows = sorted(host_rows(host), key=lambda row: _FIRST.index(row[0]) if row[0] in _FIRST else len(_FIRST))
    if not host.gpus:
        rows = [("gpu", no_gpu(host)), *(row for row in rows if row[0] not in _FIRST)]
    foreign = [line(f"! not this machine: {host.source}", "warn")] if host.source != "observed" else []
    return [*foreign, *pairs(rows)]


def no_gpu(host: Host) -> str:
    """That there is no GPU, and whether there is a driver."""
    return f"No NVIDIA GPU here ({'driver ' + host.driver_version if host.driver_version else 'no driver found'})"


def environment_rows(environment: Environment) -> list[Line]:
    """The interpreter, and the torch family with variants and owners."""
    python = environment.interpreter
    if not python.starts:
        head = joined(part("python  ", "dim"), part(f"✗ does not start: {python.error or '?'}", "bad"))
    else:
        count = len(environment.distributions)
        head = labelled("python", f"{python.version or '?'}, {environment.kind}, {count} distributions")
    members = [labelled(item.name, _member(environment, item)) for item in family(environment)]
    return [head, *(members or [line("torch is not installed", "dim")])]


def labelled(label: str, text: str) -> Line:
    """A value after its label."""
    return joined(part(f"{label}  ", "dim"), text)


def _member(environment: Environment, item: Distribution) -> str:
    """Version, variant and owner."""
    if item.name == "torch":
        variant = environment.torch.variant if environment.torch is not None else None
    else:
        companion = environment.companion(item.name)
        variant = companion.variant if companion is not None else None
    built = f" for {variant}" if variant and item.local != variant else ""
    return f"{item.version}{built}, by {item.owner}"
