"""Facts named ``toolchain.…`` and ``variables.…``, from the fields of the typed ones."""

from __future__ import annotations

from envmedic.analysis.build_tools import toolchain
from envmedic.analysis.build_variables import build_variables
from envmedic.analysis.flat import flat
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Facts


def derive(facts: Facts) -> Derived:
    """The fields of the toolchain and of the variables of builds by their flat names."""
    tools = toolchain(facts)
    variables = build_variables(facts, tools) if tools is not None else None
    if tools is None or variables is None:
        return {}
    return flat("toolchain", tools) | flat("variables", variables)
