"""Facts on NumPy's generation (1 or 2) against modules compiled for it."""

from __future__ import annotations

from envmedic.analysis.numpy_generation import asked_of_numpy, modules_for_one
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Facts

_NAMES = ("numpy.built-for-one", "numpy.modules-for-one", "numpy.refused-by", "numpy.unmet")
_COMPARES = frozenset({"numba", "transformers"})
"""Distributions that check NumPy's version on import and raise ImportError outside their range."""


def derive(facts: Facts) -> Derived:
    """The facts of ``numpy.*``; all None where NumPy is not installed."""
    environment = facts.environment
    if environment is None:
        return {}
    if environment.distribution("numpy") is None:
        return dict.fromkeys(_NAMES)
    unmet = [item for item in asked_of_numpy(environment, facts.host) if not item.met]
    modules = modules_for_one(environment)
    refusing = [item for item in unmet if item.by.name in _COMPARES]
    derived: Derived = {
        "numpy.refused-by": tuple(dict.fromkeys(item.by.name for item in refusing)),
        "numpy.unmet": tuple(dict.fromkeys(item.unmet().sentence() for item in unmet)),
    }
    if modules is not None:
        derived["numpy.built-for-one"] = tuple(modules)
        derived["numpy.modules-for-one"] = tuple(modules.values())
    return derived
