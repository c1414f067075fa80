"""The user's limits on versions, and what a plan would do to them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import Specifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from envmedic.errors import NoSolution, PinnedVersions
from envmedic.model.facts import Environment
from envmedic.model.pins import LiftedPin, UserPin
from envmedic.planner.changes.requirement_checks import applicable, meets


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


def broken(pins: Iterable[UserPin], after: Mapping[str, str | None]) -> Iterator[tuple[UserPin, str]]:
    """Yield each pin that a change does not keep, with a sentence on it.

    `after` gives the new version of each changed distribution, None for a removed one.
    """
    for pin in pins:
        requirement = Requirement(pin.requirement)
        name = canonicalize_name(requirement.name)
        version = after.get(name)
        if name in after and version is None and pin.kind != "constraint":
            yield pin, f"{pin.source} asks for {pin.requirement}, and {name} would be removed"
        elif version is not None and not meets(requirement, version):
            yield pin, f"{_says(pin)}, and {name} would be {version}"


def _says(pin: UserPin) -> str:
    return f"{pin.source} says {pin.requirement}"


def named_in(pins: Iterable[UserPin], texts: Iterable[str]) -> tuple[UserPin, ...]:
    """Return the pins that the sentences of `broken` in `texts` are about."""
    told = tuple(texts)
    return tuple(
        pin
        for pin in pins
        if any(
            f"{_says(pin)}, and " in text or f"{pin.source} asks for {pin.requirement}, and " in text for text in told
        )
    )


def refusal(summary: str, pins: Iterable[UserPin], *, cause: str, details: tuple[str, ...]) -> PinnedVersions:
    """Return the error for pins in the way."""
    return PinnedVersions(
        summary, pins=tuple((pin.source, pin.requirement) for pin in pins), cause=cause, details=details
    )


def lifted(pins: Iterable[UserPin], after: Mapping[str, str | None]) -> Iterator[LiftedPin]:
    """Yield those of `pins` that a change does not keep, with what would have to stand in their place."""
    for pin, _ in broken(pins, after):
        version = after[canonicalize_name(Requirement(pin.requirement).name)]
        if pin.kind != "lock":  # what the next sync does by it is told in any case
            instead = agreeing(pin.requirement, version) if version is not None else None
            yield LiftedPin(pin=pin.requirement, source=pin.source, kind=pin.kind, instead=instead)


def agreeing(pin: str, version: str) -> str:
    """Return a requirement that `version` meets, as near to `pin` as can be.

    Each broken bound moves to that version, and a series stays as long as it is.
    """
    requirement = Requirement(pin)
    new = version if any("+" in item.version for item in requirement.specifier) else Version(version).public
    # in the order of the pin, which a set of specifiers does not keep
    clauses = sorted(requirement.specifier, key=lambda item: pin.index(str(item)))
    nearest = f"{requirement.name}{','.join(filter(None, (_clause(item, new) for item in clauses)))}"
    return nearest if meets(Requirement(nearest), version) else f"{requirement.name}=={new}"


def _clause(item: Specifier, new: str) -> str:
    """One bound that `new` meets; empty for an excluded version."""
    if SpecifierSet(str(item)).contains(new, prereleases=True):
        return str(item)
    parts = Version(new).base_version.split(".")
    if item.operator == "!=":
        return ""
    if item.operator == "~=":
        return f"~={'.'.join(parts[: len(item.version.split('.'))])}"
    if item.version.endswith(".*"):
        return f"=={'.'.join(parts[: len(item.version.split('.')) - 1])}.*"
    return f"{item.operator[0]}={new}" if item.operator != "===" else f"==={new}"


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
    found = [item for item in pins if _is_in(Requirement(item.requirement), text)]
    if not found:
        return error
    cause = "; ".join((*dict.fromkeys(map(_says, found)), error.cause or "")).rstrip("; ")
    return refusal(error.summary, found, cause=cause, details=error.details)


def _is_in(requirement: Requirement, text: str) -> bool:
    """Whether a text without blanks states every limit of the requirement."""
    clauses = [str(item) for item in requirement.specifier]
    return bool(clauses) and requirement.name in text and all(clause in text for clause in clauses)
