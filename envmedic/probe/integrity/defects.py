"""All defects of an environment, composed from the readers of this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envmedic.model.facts import Defect, Interpreter
from envmedic.probe.integrity import byte_code, programs, sources, start_hooks, structure
from envmedic.probe.layout import Layout
from envmedic.probe.packages.distributions import Scan


def observe(found: Layout, python: Interpreter, scans: Sequence[Scan], sizes: Mapping[str, int]) -> tuple[Defect, ...]:
    """List the defects; `sizes` are those of the regular files in the prefix. Runs nothing but the environment's Python."""
    return (
        *structure.observe(found, python, scans),
        *programs.observe(found.prefix, scans, sizes),
        *start_hooks.observe(found.prefix, scans),
        *sources.observe(found.prefix, scans),
        *byte_code.observe(found, python, scans),
    )
