"""Requirements between installed distributions, by their metadata alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec
from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envmedic.compat.versions import allows, version
from envmedic.model.base import Model
from envmedic.model.facts import Distribution, Environment, Host

_SYSTEMS = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}
# a pattern, not `packaging`: a large environment has thousands of requirements, whose parsing a diagnosis can feel
_PLAIN = re.compile(
    r"\s*([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[\w\s,.-]*\])?\s*\(?((?:[<>=!~][^;@()\[\]]*?)?)\)?\s*(?:;(.*))?"
)
"""Name, versions and marker of a requirement without a URL."""
_EXTRA = re.compile(r"\bextra\s*==")
_BESIDE = frozenset({">=", "==", "~=", "===", ">", "<=", "!="})
"""Operators whose lowest matching version is their own version, or a close successor of it."""


class Unmet(Model, frozen=True, kw_only=True):
    """An unmet requirement."""

    distribution: str
    """``name version`` of the distribution with the requirement."""
    requirement: str
    found: str | None
    """Installed version; None when it is missing."""

    def sentence(self) -> str:
        """Return the requirement as one line for users."""
        name = _PLAIN.match(self.requirement)
        instead = f"{name[1] if name else ''} {self.found} is installed".lstrip() if self.found else "it is missing"
        return f"{self.distribution} requires {self.requirement}, {instead}"


class Demand(msgspec.Struct, frozen=True):
    """A requirement of one installed distribution on another one."""

    by: Distribution
    name: str
    """Normalised name of the required distribution."""
    specifier: str
    """Accepted versions; empty for any version."""
    found: str | None
    """The installed version, None when it is missing."""

    @property
    def met(self) -> bool:
        """Whether the installed version is accepted."""
        return self.found is not None and (not self.specifier or allows(self.specifier, self.found))

    def unmet(self) -> Unmet:
        """Return the demand as an unmet requirement."""
        asked = f"{self.name}{self.specifier}"
        return Unmet(distribution=f"{self.by.name} {self.by.version}", requirement=asked, found=self.found)


def markers(environment: Environment, host: Host) -> dict[str, str]:
    """Return the marker variables (PEP 508) of the environment's interpreter on `host`, with no extra chosen."""
    full = environment.interpreter.version or "0"
    return {
        # PEP 508 leaves `extra` undefined outside of an installation; without a value `packaging` raises an error
        "extra": "",
        "implementation_name": environment.interpreter.implementation or "cpython",
        "implementation_version": full,
        "os_name": "nt" if host.system == "win32" else "posix",
        "platform_machine": host.machine,
        "platform_python_implementation": "CPython",
        # kernel release and version are unknown for another host, and requirements hardly ever name them
        "platform_release": "",
        "platform_system": _SYSTEMS.get(host.system, ""),
        "platform_version": "",
        "python_full_version": full,
        "python_version": ".".join(full.split(".")[:2]),
        "sys_platform": host.system,
    }


def applicable(text: str, values: Mapping[str, str]) -> Requirement | None:
    """Return `text` as a requirement if it can be read and its marker holds, else None.

    An invalid requirement counts for nothing: installers would refuse the distribution itself.
    """
    requirement = parsed(text)
    return requirement if requirement is not None and holds(requirement, values) else None


@lru_cache(maxsize=16384)
def parsed(text: str) -> Requirement | None:
    """Return `text` as a requirement, not to be changed; None for an invalid one."""
    # cached: an environment has thousands, and each proposal of a plan is held against all of them
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def holds(requirement: Requirement, values: Mapping[str, str]) -> bool:
    """Whether the marker of a requirement holds."""
    return requirement.marker is None or requirement.marker.evaluate(dict(values))


def meets(requirement: Requirement, found: str) -> bool:
    """Whether an installed version satisfies a requirement. A requirement with a URL counts as met."""
    parsed = version(found)
    # pip keeps an installed pre-release for a requirement that would not select one
    return parsed is not None and requirement.specifier.contains(parsed, prereleases=True)


def demands(environment: Environment, values: Mapping[str, str]) -> tuple[Demand, ...]:
    """Return all requirements of the distributions inside the prefix that apply here.

    Of several copies of one distribution the first counts, which is the one that Python imports.
    """
    first: dict[str, Distribution] = {}
    for item in environment.distributions:
        first.setdefault(item.name, item)
    # hashable, for the cache of markers: thousands of requirements share a few dozen markers
    marker_values = tuple(sorted(values.items()))
    return tuple(
        Demand(item, name, specifier, first[name].version if name in first else None)
        for item in first.values()
        if not item.outside_prefix
        for name, specifier in _asked(item.requires, marker_values)
    )


def unsuited_python(environment: Environment) -> Iterator[Unmet]:
    """Yield the distributions inside the prefix that refuse the Python of the environment by their metadata."""
    python = environment.interpreter.version
    for item in environment.distributions:
        asked = (item.requires_python or "").replace(" ", "")
        if python is not None and asked and not item.outside_prefix and not allows(asked, python):
            yield Unmet(distribution=f"{item.name} {item.version}", requirement=f"python{asked}", found=python)


def of_extras(environment: Environment, values: Mapping[str, str], names: Collection[str]) -> tuple[Demand, ...]:
    """Return the requirements on distributions of these names that extras of installed distributions state."""
    found: list[Demand] = []
    for item in environment.distributions:
        for text in item.requires:
            parts = _PLAIN.fullmatch(text)
            name = canonicalize_name(parts[1]) if parts is not None else ""
            if parts is None or name not in names or _EXTRA.search(text) is None:
                continue
            marker = (parts[3] or "").strip()
            extras = dict.fromkeys(re.findall(r"""\bextra\s*==\s*["']([\w.-]+)""", marker))
            if any(_holds(marker, tuple(sorted({**values, "extra": extra}.items()))) for extra in extras):
                installed = environment.distribution(name)
                version = installed.version if installed is not None else None
                found.append(Demand(item, name, parts[2].replace(" ", ""), version))
    return tuple(dict.fromkeys(found))


def _asked(requires: Iterable[str], values: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """Yield the normalised name and specifier of each requirement whose marker holds, without those of extras."""
    for text in requires:
        # a cheap search first: most requirements of a large list are of extras
        found = None if _EXTRA.search(text) else _PLAIN.fullmatch(text)
        if found is not None and _holds((found[3] or "").strip(), values):
            yield canonicalize_name(found[1]), found[2].replace(" ", "")


@lru_cache(maxsize=1024)
def _holds(marker: str, values: tuple[tuple[str, str], ...]) -> bool:
    """Whether a marker holds; an invalid one does not."""
    if not marker:
        return True
    try:
        return Marker(marker).evaluate(dict(values))
    except InvalidMarker:
        return False


def satisfying(name: str, every: Iterable[Demand], also: str = "") -> str | None:
    """Return one requirement on `name` that combines all demands on it and the specifier `also`.

    None where they exclude each other.
    """
    stated = (item.specifier for item in every if item.name == name)
    specifiers = tuple(dict.fromkeys(text for text in (*stated, also) if text))
    parts = tuple(dict.fromkeys(part for text in specifiers for part in text.split(",") if part))
    joined = ",".join(sorted(parts))
    # `packaging` can test a version against a specifier, but not whether a specifier admits any version at all
    if parts and not any(allows(joined, candidate) for candidate in _candidates(parts)):
        return None
    return f"{name}{joined}"


def _candidates(parts: tuple[str, ...]) -> Iterator[str]:
    """Yield test versions, one of which meets all `parts` if any version does: near each lower bound."""
    # for specifiers that have upper bounds only
    yield from ("0", "0.0.1")
    for part in parts:
        operator = part.rstrip("0123456789.*+!abcdefghijklmnopqrstuvwxyz_-ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        bound = part.removeprefix(operator).removesuffix(".*")
        if operator in _BESIDE:
            yield from (bound, f"{bound}.post1", f"{bound}.1")
