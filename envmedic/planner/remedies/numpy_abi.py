"""The remedy for NumPy and modules compiled for another generation of its ABI."""

from __future__ import annotations

from envmedic.analysis.numpy_generation import asked_of_numpy, modules_for_one
from envmedic.compat import tables
from envmedic.compat.installed_requirements import satisfying
from envmedic.compat.versions import allows, parsed
from envmedic.errors import NoSolution
from envmedic.planner.remedies.remedy import Remedy, Situation


def numpy_abi(situation: Situation) -> Remedy:
    """Install a NumPy that all dependents accept, else newer releases of dependents that are too old for NumPy 2."""
    environment = situation.environment
    if environment.distribution("numpy") is None:
        return Remedy(why="NumPy is not installed here")
    every, modules = asked_of_numpy(environment, situation.host), modules_for_one(environment)
    if modules is None:
        raise NoSolution(
            "It is not known which modules here are compiled for NumPy 1, so no NumPy can be chosen for them",
            cause="the files of the environment were not looked at",
            hint="Plan on the machine that has the environment, from facts that are observed there",
        )
    if not modules and all(item.met for item in every):
        return Remedy(why="NumPy fits all that is compiled for it")
    python = ".".join((environment.interpreter.version or "").split(".")[:2])
    wanted = satisfying("numpy", every)
    if wanted is not None and modules:
        # modules that are compiled for NumPy 1 crash with NumPy 2; those compiled for 2 also run with 1.x
        wanted = f"{wanted}{',' if wanted != 'numpy' else ''}<2"
    if wanted is not None and _exists(wanted.removeprefix("numpy"), python):
        return Remedy(
            install=(wanted,), why="all that is compiled for NumPy, and all that requires it, accepts this one"
        )
    built = [item.partition(" ") for item in modules]
    if not built or any(name == "torch" for name, _, _ in built):  # another torch is no answer to a question of NumPy
        return Remedy(why="no NumPy is known that all accept, and no newer release of what is too old")
    # only newer releases can know NumPy 2; which one, the resolver finds
    upgrades = tuple(f"{name}>{version}" for name, _, version in built)
    return Remedy(install=upgrades, why="something asks for NumPy 2, which these releases do not know")


def _exists(specifier: str, python: str) -> bool:
    """Whether a NumPy that the data knows, or the one that is pinned, is in that range and has wheels for Python."""
    rows = (
        row for row in tables.numpy_releases() if parsed(row.wheels_min) <= parsed(python) <= parsed(row.wheels_max)
    )
    if any(not specifier or allows(specifier, row.numpy) for row in rows):
        return True
    return any(part.startswith("==") and "*" not in part for part in specifier.split(","))
