"""What a diagnosis by facts has looked at, and what it has not: "healthy" means no more than that."""

from __future__ import annotations

from typing import Final

from envmedic.compat import consumer_kinds, tables, versions
from envmedic.model.facts import Environment

_OTHERS: Final = frozenset({"mxnet", "mindspore"})
"""Distributions that use CUDA by rules that envmedic does not know, and that are no consumers of its registry."""


def examined(environment: Environment) -> tuple[str, ...]:
    """Return what the facts were read from, in words."""
    listed = sum(1 for item in environment.distributions if item.has_record and not item.outside_prefix)
    parts = [
        f"the requirements of {_distributions(len(environment.distributions))}",
        f"the files of {listed} of them, by size",
    ]
    known = [item for item in environment.consumers if item.libraries]
    if known:
        opened = sum(len(item.libraries) for item in known)
        parts.append(f"{opened} libraries of NVIDIA that {', '.join(item.name for item in known)} open")
    if environment.conda is not None:
        parts.append(f"the records of {len(environment.conda.packages)} conda packages")
    count = environment.extension_count + len(environment.libraries)
    if count:
        parts.append(f"{count} compiled module{'s' if count > 1 else ''}, as the loader would take them")
    return tuple(parts)


def _distributions(count: int) -> str:
    return f"{count} distribution{'s' if count != 1 else ''}"


def unexamined(environment: Environment) -> tuple[str, ...]:
    """Return what was not looked at, in words."""
    unknown = sorted({item.name for item in environment.distributions} & _OTHERS)
    unknown += [item.name for item in environment.consumers if not consumer_kinds.by_name()[item.name].repaired]
    hooks = sorted({item.where for item in environment.import_paths if item.kind == "sitecustomize"})
    return (
        *_newer_than_the_tables(environment),
        *([f"whether {', '.join(unknown)} would use the GPU"] if unknown else []),
        *(f"what {path} does when Python starts" for path in hooks),
        "whether imports work (`envmedic verify`)",
        "the contents of files of the right size (`--deep`)",
    )


def _newer_than_the_tables(environment: Environment) -> tuple[str, ...]:
    newest = max(tables.releases(), key=versions.parsed)
    for item in environment.distributions:
        version = versions.version(item.version) if item.name == "torch" else None
        if version is not None and version.release > versions.parsed(newest).release:
            day = tables.written()["torch_releases"]
            known = f"the tables are of {day} and end with {newest}; newer ones come by `envmedic data update`"
            return (f"whether driver, GPUs and companions go with torch {item.version}: {known}",)
    return ()
