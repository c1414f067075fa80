"""Remedies for distributions that are installed twice, or over each other."""

from __future__ import annotations

from collections.abc import Iterable

from envmedic.analysis.packages.dependents import Dependants, parse
from envmedic.analysis.packages.doubled_files import duplicates, fits, overwritings, pin, restorable, stays
from envmedic.model.facts import Distribution, Environment, Leftover
from envmedic.planner.remedies.remedy import Remedy, Situation


def duplicate_install(situation: Situation) -> Remedy:
    """Remove every copy and install the right version, and reinstall distributions with nothing but leftovers."""
    environment = situation.environment
    dependants = Dependants(environment, situation.host)
    right = [item.right for item in duplicates(environment, dependants) if restorable(item.right)]
    install = (*map(pin, right), *_lost(environment, dependants))
    return Remedy(
        purge=tuple(item.name for item in right),
        leftovers=True,
        install=install,
        why="others ask for these versions, or their files are the ones that are there"
        if install
        else "nothing is installed twice, or only in part, that an index could give again",
    )


def clobbered(situation: Situation) -> Remedy:
    """Remove both distributions of a pair and install the one that is to stay, so that its files are whole."""
    environment = situation.environment
    dependants = Dependants(environment, situation.host)
    found = overwritings(environment, dependants)
    names = (
        name
        for item in found
        for name in item.conflict.distributions
        if name == item.right.name or not stays(name, item.right, dependants)
    )
    return Remedy(
        purge=tuple(dict.fromkeys(names)),
        install=tuple(dict.fromkeys(_wanted(item.right, dependants, environment) for item in found)),
        why="other distributions require these, or they fit Python and NumPy and are the newer ones"
        if found
        else "of no two distributions that share files one could go",
    )


def _wanted(right: Distribution, dependants: Dependants, environment: Environment) -> str:
    """Return the requirement on the one that stays: its version, or another one where that fits neither Python nor NumPy."""
    if fits(right, dependants, environment):
        return pin(right)
    asked = dependants.asked(right.name)
    return f"{asked}{',' if asked != right.name else ''}!={right.version}"


def _lost(environment: Environment, dependants: Dependants) -> tuple[str, ...]:
    """Return requirements on distributions with nothing but leftovers, if those contain code or dependents exist."""
    installed = {item.name for item in environment.distributions if not item.outside_prefix}
    by_name: dict[str, list[Leftover]] = {}
    for item in environment.leftovers:
        if item.name is not None and item.name not in installed:
            by_name.setdefault(item.name, []).append(item)
    return tuple(
        _lost_version(name, items, dependants)
        for name, items in by_name.items()
        if any(item.code for item in items) or dependants.of(name)
    )


def _lost_version(name: str, items: Iterable[Leftover], dependants: Dependants) -> str:
    """Return a pin to the leftover version that suits the dependents, else the requirement of the dependents."""
    stated = [item for item in items if item.version is not None and parse(item.version) is not None]
    if not stated:
        return dependants.asked(name)
    # the version that most dependents accept; of equals the one whose code, not only metadata, was left behind
    best = max(stated, key=lambda item: (dependants.accepting(name, str(item.version)), item.code))
    fits = dependants.accepting(name, str(best.version)) == len(dependants.of(name))
    return f"{name}=={best.version}" if fits else dependants.asked(name)
