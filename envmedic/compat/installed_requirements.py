"""Requirements between installed distributions, by their metadata alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec
from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envmedic.compat.versions import allows, version
from envmedic.model.base import Model
from envmedic.model.facts import Distribution, Environment, Host

_SYSTEMS = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}
_PLAIN = re.compile(
    r"\s*([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[\w\s,.-]*\])?\s*\(?((?:[<>=!~][^;@()\[\]]*?)?)\)?\s*(?:;(.*))?"
)
"""Name, versions and marker of a requirement without a URL."""
_EXTRA = re.compile(r"\bextra\s*==")
_BESIDE = frozenset({">=", "==", "~=", "===", ">", "<=", "!="})
"""Operators beside whose version the lowest version lies that fulfils them."""


class Unmet(Model, frozen=True, kw_only=True):
    """A requirement that is not met."""

    distribution: str
    """``name version`` of what requires it."""
    requirement: str
    found: str | None
    """Version that is there instead; None when it is missing."""

    def sentence(self) -> str:
        """One line for people."""
        instead = f"{self.found} is there" if self.found else "it is missing"
        return f"{self.distribution} requires {self.requirement}, {instead}"


class Demand(msgspec.Struct, frozen=True):
    """What one installed distribution asks of another one."""

    by: Distribution
    name: str
    """Normalised name of what is asked for."""
    specifier: str
    """Versions that it accepts; empty for every one."""
    found: str | None
    """The installed version, None when it is missing."""

    @property
    def met(self) -> bool:
        """Whether what is installed is accepted."""
        return self.found is not None and (not self.specifier or allows(self.specifier, self.found))

    def unmet(self) -> Unmet:
        """It as an unmet requirement."""
        asked = f"{self.name}{self.specifier}"
        return Unmet(distribution=f"{self.by.name} {self.by.version}", requirement=asked, found=self.found)


def markers(environment: Environment, host: Host) -> dict[str, str]:
    """Return the marker variables (PEP 508) of the environment's interpreter on `host`, with no extra chosen."""
    full = environment.interpreter.version or "0"
    return {
        "extra": "",
        "implementation_name": environment.interpreter.implementation or "cpython",
        "implementation_version": full,
        "os_name": "nt" if host.system == "win32" else "posix",
        "platform_machine": host.machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": _SYSTEMS.get(host.system, ""),
        "platform_version": "",
        "python_full_version": full,
        "python_version": ".".join(full.split(".")[:2]),
        "sys_platform": host.system,
    }


def applicable(text: str, values: Mapping[str, str]) -> Requirement | None:
    """Return `text` as a requirement if it can be read and its marker holds, else None.

    A requirement that cannot be read binds nobody: installers would refuse the distribution itself.
    """
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    holds = requirement.marker is None or requirement.marker.evaluate(dict(values))
    return requirement if holds else None


def meets(requirement: Requirement, found: str) -> bool:
    """Whether an installed version satisfies a requirement; a URL requirement is taken as met."""
    parsed = version(found)
    return parsed is not None and requirement.specifier.contains(parsed, prereleases=True)


def demands(environment: Environment, values: Mapping[str, str]) -> tuple[Demand, ...]:
    """Return everything that the distributions inside the prefix ask of others here.

    Of several copies of one distribution the first counts, which is the one that Python imports.
    """
    first: dict[str, Distribution] = {}
    for item in environment.distributions:
        first.setdefault(item.name, item)
    marker_values = tuple(sorted(values.items()))
    return tuple(
        Demand(item, name, specifier, first[name].version if name in first else None)
        for item in first.values()
        if not item.outside_prefix
        for name, specifier in _asked(item.requires, marker_values)
    )


def _asked(requires: Iterable[str], values: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """Normalised name and specifier of each requirement whose marker holds. Most of a large list are of extras."""
    for text in requires:
        found = None if _EXTRA.search(text) else _PLAIN.fullmatch(text)
        if found is not None and _holds((found[3] or "").strip(), values):
            yield canonicalize_name(found[1]), found[2].replace(" ", "")


@lru_cache(maxsize=1024)
def _holds(marker: str, values: tuple[tuple[str, str], ...]) -> bool:
    """Whether a marker holds; one that cannot be read binds nobody."""
    if not marker:
        return True
    try:
        return Marker(marker).evaluate(dict(values))
    except InvalidMarker:
        return False


def satisfying(name: str, every: Iterable[Demand]) -> str | None:
    """Return one requirement on `name` that fulfils all that is asked of it, None where they exclude each other."""
    specifiers = tuple(dict.fromkeys(item.specifier for item in every if item.name == name and item.specifier))
    parts = tuple(dict.fromkeys(part for text in specifiers for part in text.split(",") if part))
    joined = ",".join(sorted(parts))
    if parts and not any(allows(joined, candidate) for candidate in _candidates(parts)):
        return None
    return f"{name}{joined}"


def _candidates(parts: tuple[str, ...]) -> Iterator[str]:
    """Versions one of which fulfils all `parts`, if any does: an intersection has the highest of the lower bounds."""
    yield from ("0", "0.0.1")
    for part in parts:
        operator = part.rstrip("0123456789.*+!abcdefghijklmnopqrstuvwxyz_-ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        bound = part.removeprefix(operator).removesuffix(".*")
        if operator in _BESIDE:
            yield from (bound, f"{bound}.post1", f"{bound}.1")
