"""Variables as a shell has them in which the environment is activated."""

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
    """Variables by name: the shell's, then what activation scripts do to them, then what the environment keeps."""
    found = {item.name: Value(item.value, item.source, kept=False) for item in facts.host.variables}
    environment = facts.environment
    if environment is None:
        return found
    scripts = environment.building.assignments if environment.building is not None else ()
    for item in (*scripts, *environment.variables):
        if item.value is None:
            found.pop(item.name, None)
        else:
            found[item.name] = Value(item.value, item.source, kept=True)
    return found
