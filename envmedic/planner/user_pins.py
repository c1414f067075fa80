"""The user's limits on versions, and what a plan would do to them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envmedic.errors import NoSolution
from envmedic.model.facts import Environment
from envmedic.model.pins import UserPin
from envmedic.planner.changes.requirement_checks import applicable, meets

HINT = "Change what is stated there, then repair again; envmedic walks around no pin"


def binding(pins: Iterable[UserPin], environment: Environment, values: Mapping[str, str]) -> tuple[UserPin, ...]:
    """Return the pins that hold for the environment, without markers; `values` are its marker variables.

    A file of requirements that need not be about the environment binds by what the environment keeps today.
    """
    return tuple(_held(pins, environment, values))


def _held(pins: Iterable[UserPin], environment: Environment, values: Mapping[str, str]) -> Iterator[UserPin]:
    for pin in pins:
        requirement = applicable(pin.requirement, values)
        if requirement is None:
            continue
        installed = environment.distribution(canonicalize_name(requirement.name))
        if pin.kind != "variant" or (installed is not None and meets(requirement, installed.version)):
            yield msgspec.structs.replace(pin, requirement=f"{requirement.name}{requirement.specifier}")


def constraints(pins: Iterable[UserPin]) -> tuple[str, ...]:
    """Return the limits as lines of a file of constraints."""
    return tuple(dict.fromkeys(item.requirement for item in pins if Requirement(item.requirement).specifier))


def broken(pins: Iterable[UserPin], after: Mapping[str, str | None]) -> Iterator[str]:
    """Yield a sentence for each pin that a change does not keep.

    `after` gives the new version of each changed distribution, None for a removed one.
    """
    for pin in pins:
        requirement = Requirement(pin.requirement)
        name = canonicalize_name(requirement.name)
        version = after.get(name)
        if name in after and version is None and pin.kind != "constraint":
            yield f"{pin.source} asks for {pin.requirement}, and {name} would be removed"
        elif version is not None and not meets(requirement, version):
            yield f"{pin.source} says {pin.requirement}, and {name} would be {version}"


def kept(pins: Iterable[UserPin], after: Iterable[str]) -> tuple[str, ...]:
    """Return a note for each limit on a distribution that changes."""
    changed = set(after)
    return tuple(
        f"Kept: {item.requirement} ({item.source})"
        for item in pins
        if (limit := Requirement(item.requirement)).specifier and canonicalize_name(limit.name) in changed
    )


def blamed(pins: Iterable[UserPin], error: NoSolution) -> NoSolution:
    """Return `error` with the file and line of each pin that the resolver's reason is about."""
    text = " ".join((error.cause or "", *error.details)).replace(" ", "")
    found = dict.fromkeys(
        f"{item.source} says {item.requirement}" for item in pins if _is_in(Requirement(item.requirement), text)
    )
    if not found:
        return error
    told = NoSolution(error.summary, cause="; ".join((*found, error.cause or "")).rstrip("; "), hint=HINT)
    told.details = error.details
    return told


def _is_in(requirement: Requirement, text: str) -> bool:
    """Whether a text without blanks states every limit of the requirement."""
    clauses = [str(item) for item in requirement.specifier]
    return bool(clauses) and requirement.name in text and all(clause in text for clause in clauses)
