"""Whether NumPy and what is compiled for it are of one generation, and what makes them so."""

from __future__ import annotations

from collections.abc import Sequence

from envmedic.compat import tables
from envmedic.compat.installed_requirements import Demand, demands, markers, satisfying
from envmedic.compat.versions import allows, parsed
from envmedic.diagnosis.derived import Derived
from envmedic.model.facts import Environment, Facts

_NAMES = ("numpy.built-for-one", "numpy.modules-for-one", "numpy.refused-by", "numpy.unmet", "numpy.pins")
_COMPARES = frozenset({"numba", "transformers"})
"""Distributions that compare NumPy's version when they are imported, and stop where it is another one."""


def derive(facts: Facts) -> Derived:
    """The facts of ``numpy.*``; all None where NumPy is not installed."""
    environment = facts.environment
    if environment is None:
        return {}
    if environment.distribution("numpy") is None:
        return dict.fromkeys(_NAMES)
    every = [item for item in demands(environment, markers(environment, facts.host)) if item.name == "numpy"]
    unmet = [item for item in every if not item.met]
    modules = _modules(environment)
    refusing = [item for item in unmet if item.by.name in _COMPARES]
    derived: Derived = {
        "numpy.refused-by": tuple(dict.fromkeys(item.by.name for item in refusing)),
        "numpy.unmet": tuple(dict.fromkeys(item.unmet().sentence() for item in unmet)),
    }
    if modules is not None:
        derived["numpy.built-for-one"] = tuple(modules)
        derived["numpy.modules-for-one"] = tuple(modules.values())
        derived["numpy.pins"] = _pins(every, tuple(modules), environment) if modules or unmet else ()
    return derived


def _modules(environment: Environment) -> dict[str, str] | None:
    """What knows NumPy 1 only, as ``name version``, and the file that shows it; None where it was not looked for."""
    numpy = environment.distribution("numpy")
    if numpy is not None and allows("<2", numpy.version):
        return {}
    if environment.numpy_one is None:
        return None
    found = {f"{item.distribution} {item.version}": item.path for item in environment.numpy_one}
    torch = environment.distribution("torch")
    if torch is not None and tables.numpy_generations().get(torch.public) == 1:
        found[f"torch {torch.version}"] = f"{torch.site}/torch/lib/libtorch_python.so"
    return found


def _pins(every: Sequence[Demand], built_for_one: Sequence[str], environment: Environment) -> tuple[str, ...] | None:
    """A NumPy that all accept, else newer releases of what is too old; None where neither is known to exist."""
    python = ".".join((environment.interpreter.version or "").split(".")[:2])
    wanted = satisfying("numpy", every)
    if wanted is not None and built_for_one:
        wanted = f"{wanted}{',' if wanted != 'numpy' else ''}<2"
    if wanted is not None and _exists(wanted.removeprefix("numpy"), python):
        return (wanted,)
    upgrades = tuple(_newer(item) for item in built_for_one)
    if not upgrades or any(item.startswith("torch>") for item in upgrades):
        return None
    return upgrades


def _exists(specifier: str, python: str) -> bool:
    """Whether a NumPy that the data knows, or the one that is pinned, is in that range and has wheels for Python."""
    rows = (
        row for row in tables.numpy_releases() if parsed(row.wheels_min) <= parsed(python) <= parsed(row.wheels_max)
    )
    if any(not specifier or allows(specifier, row.numpy) for row in rows):
        return True
    return any(part.startswith("==") and "*" not in part for part in specifier.split(","))


def _newer(built: str) -> str:
    name, _, version = built.partition(" ")
    return f"{name}>{version}"
