"""Facts on compiled modules: undefined symbols, GPU code, the C++ run-time library."""

from __future__ import annotations

from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Facts


def derive(facts: Facts) -> Derived:
    """The facts of `model.kinds_extensions`."""
    return {} if facts.environment is None else {}
