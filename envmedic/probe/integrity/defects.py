"""All defects of an environment, composed from the readers of this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envmedic.model.facts import Defect, Interpreter
from envmedic.probe.integrity import programs, sources, start_hooks, structure
from envmedic.probe.layout import Layout
from envmedic.probe.packages.distributions import Scan


def observe(
    found: Layout, homes: Sequence[Path], python: Interpreter, scans: Sequence[Scan], sizes: Mapping[str, int]
) -> tuple[Defect, ...]:
    """List the defects, those of byte code apart. Runs nothing.

    `homes` are the paths by which its files may name it, its own first; `sizes` are those of the regular files in the prefix.
    """
    of_structure = tuple(structure.observe(found, homes, python, scans))
    former = next((item.names for item in of_structure if item.kind == "moved"), None)
    return (
        *of_structure,
        *programs.observe(found.prefix, homes, scans, sizes),
        *start_hooks.observe(found, scans),
        *sources.observe(found.prefix, scans, moved=(former, str(homes[0])) if former is not None else None),
    )
