"""The variables that an environment keeps for the shells that activate it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from envmedic import activation
from envmedic.errors import require_spare
from envmedic.model.facts import KeptVariable
from envmedic.redact import redact_variable


def observe(prefix: Path, given: Mapping[str, str]) -> tuple[KeptVariable, ...]:
    """What activating the environment at `prefix` sets and unsets, without secrets; () where its files cannot be read.

    `given` are the variables of the shell that activates it.
    """
    try:
        found = activation.activated(prefix, prefix, given)
    except ValueError:
        return ()
    except OSError as error:
        require_spare(error)
        return ()
    return tuple(
        KeptVariable(name=name, value=None if value is None else redact_variable(name, value), source=where)
        for name, (value, where) in found.items()
    )
