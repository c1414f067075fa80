"""Environment variables of a shell after activation."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from envmedic.model.facts import Facts


class Value(msgspec.Struct, frozen=True):
    """A variable that is set."""

    value: str
    source: str
    kept: bool
    """Whether the environment's own activation sets it."""


Values = Mapping[str, Value]


def activated(facts: Facts) -> Values:
    """Variables by name: the shell's, changed by activation scripts, then by what the environment keeps."""
    found = {item.name: Value(item.value, item.source, kept=False) for item in facts.host.variables}
    environment = facts.environment
    if environment is None:
        return found
    scripts = environment.building.assignments if environment.building is not None else ()
    # a value that was given to the environment itself is meant to win over one from a package's script
    for item in (*scripts, *environment.variables):
        if item.value is None:  # an `unset`
            found.pop(item.name, None)
        else:
            found[item.name] = Value(item.value, item.source, kept=True)
    return found
