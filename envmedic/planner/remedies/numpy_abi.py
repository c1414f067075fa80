"""The remedy for NumPy and modules compiled for another generation of its ABI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envmedic.analysis.numpy_generation import asked_of_numpy, modules_for_one
from envmedic.analysis.packages.requirement_faults import requirement_faults
from envmedic.compat import tables
from envmedic.compat.installed_requirements import Demand, satisfying
from envmedic.compat.versions import allows, parsed
from envmedic.errors import NoSolution
from envmedic.model.facts import Environment
from envmedic.planner.moves.conflict_graph import conflicts
from envmedic.planner.remedies.drift import with_drift
from envmedic.planner.remedies.remedy import Remedy, Situation, moving


def numpy_abi(situation: Situation) -> Remedy:
    """Install a NumPy that all dependents accept, or newer releases of what is too old for the installed one."""
    environment = situation.environment
    numpy = environment.distribution("numpy")
    if numpy is None:
        return Remedy(why="NumPy is not installed here")
    every, modules = asked_of_numpy(environment, situation.host), modules_for_one(environment)
    if modules is None:
        raise NoSolution(
            "It is not known which modules here are compiled for NumPy 1, so no NumPy can be chosen for them",
            cause="the files of the environment were not looked at",
            hint="Plan on the machine that has the environment, from facts that are observed there",
        )
    stated = requirement_faults(environment, situation.host).every
    if not modules and all(item.met for item in every):
        # what is not compiled may ask for names that NumPy has no more
        return moving(
            with_drift(conflicts(environment, (), stated), situation, stated),
            why="one of them was made for another release of the other",
            otherwise="NumPy fits all that is compiled for it",
        )
    python = ".".join((environment.interpreter.version or "").split(".")[:2])
    # modules that are compiled for NumPy 1 crash with NumPy 2; those compiled for 2 also run with 1.x
    compiled = tuple(_for_one(modules, environment, numpy.version))
    unmet = (*compiled, *(item for item in every if not item.met))
    stays = () if _exists(satisfying("numpy", unmet), python) else ("numpy",)
    asked = (*stated, *compiled)
    return moving(
        with_drift(conflicts(environment, unmet, asked, unstated=compiled, fixed=frozenset(stays)), situation, asked),
        why="these releases fit all that is compiled for NumPy, and all that requires it",
        otherwise="no NumPy is known that all accept, and no newer release of what is too old",
    )


def _for_one(modules: Iterable[str], environment: Environment, numpy: str) -> Iterator[Demand]:
    """Yield distributions with modules compiled for NumPy 1, each ``name version``, as requirements on NumPy."""
    for name in dict.fromkeys(item.partition(" ")[0] for item in modules):
        owner = environment.distribution(name)
        if owner is not None:
            yield Demand(owner, "numpy", "<2", numpy)


def _exists(requirement: str | None, python: str) -> bool:
    """Whether a NumPy that the data knows, or the one that is pinned, meets it and has wheels for Python."""
    if requirement is None:
        return False
    specifier = requirement.removeprefix("numpy")
    rows = (
        row for row in tables.numpy_releases() if parsed(row.wheels_min) <= parsed(python) <= parsed(row.wheels_max)
    )
    if any(not specifier or allows(specifier, row.numpy) for row in rows):
        return True
    return any(part.startswith("==") and "*" not in part for part in specifier.split(","))
