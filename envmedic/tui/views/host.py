"""The host as lines."""

from __future__ import annotations

from envmedic.errors import EnvmedicError
from envmedic.model.facts import Host
from envmedic.render.facts import host_rows
from envmedic.tui.text import Line, TextPart, line, padded, visible, width

_FIRST = ("gpu", "driver")
"""What is read first."""


def host_card(host: Host | None, error: EnvmedicError | None) -> list[Line]:
    """GPUs, driver and newest CUDA, then the system, toolkits, compilers and the variables that matter."""
    if error is not None:
        return [line(f"! {error.summary}", "bad")]
    if host is None:
        return [line("… reading the host", "dim")]
    rows = sorted(host_rows(host), key=lambda row: _FIRST.index(row[0]) if row[0] in _FIRST else len(_FIRST))
    if not host.gpus:
        rows.insert(0, ("gpu", "none that the driver reports"))
    cells = max(width(row[0]) for row in rows)
    lines: list[Line] = [
        (TextPart(padded(visible(row[0]), cells) + "  ", "dim"), TextPart(visible(row[1]))) for row in rows
    ]
    if host.source != "observed":
        lines.insert(0, line(f"! not this machine: {host.source}", "warn"))
    return lines
