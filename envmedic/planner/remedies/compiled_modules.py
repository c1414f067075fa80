"""The remedy for compiled modules that were built for another torch."""

from __future__ import annotations

from collections.abc import Iterator

from envmedic.analysis.compiled_modules import for_other_torch, names_other_torch, other_label
from envmedic.model.facts import Environment
from envmedic.planner.remedies.remedy import Remedy, Situation


def extension_undefined_symbol(situation: Situation) -> Remedy:
    """Install another build of the same version by its label, or the release whose metadata accepts this torch."""
    found = tuple(_replacements(situation.environment))
    if not found:
        return Remedy(why="no module that misses something of torch says which torch it was built for")
    return Remedy(install=found, why="these modules name the torch that they were built for")


def _replacements(environment: Environment) -> Iterator[str]:
    for item in for_other_torch(environment):
        label = other_label(item, environment.torch)
        if label is not None:
            yield f"{item.name}=={item.public}+{label}"
        elif names_other_torch(item, environment.torch):
            yield item.name
