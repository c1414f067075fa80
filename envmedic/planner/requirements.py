"""Requirements of distributions held against what is, or will be, installed. By metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envmedic.compat.versions import version
from envmedic.model.base import Model
from envmedic.model.facts import Environment, Host
from envmedic.model.plan import Artifact

_SYSTEMS = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}


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


def unmet(
    environment: Environment, removed: Iterable[str], new: Iterable[Artifact], *, values: Mapping[str, str]
) -> tuple[Unmet, ...]:
    """Return the requirements of `new` wheels that (installed - removed + new) does not meet.

    `removed` are normalised names; `values` the marker variables (`markers`).
    """
    artifacts = tuple(new)
    gone = set(removed)
    there = {item.name: item.version for item in reversed(environment.distributions) if item.name not in gone}
    there |= {str(canonicalize_name(item.name)): item.version for item in artifacts}
    found = (_unmet(f"{item.name} {item.version}", text, there, values) for item in artifacts for text in item.requires)
    return tuple(item for item in found if item is not None)


def _unmet(name: str, text: str, there: Mapping[str, str], values: Mapping[str, str]) -> Unmet | None:
    requirement = applicable(text, values)
    if requirement is None:
        return None
    found = there.get(canonicalize_name(requirement.name))
    if found is not None and meets(requirement, found):
        return None
    return Unmet(distribution=name, requirement=f"{requirement.name}{requirement.specifier}", found=found)


def unmet_already(environment: Environment, new: Iterable[Artifact], *, values: Mapping[str, str]) -> frozenset[str]:
    """Return what installed distributions lack that `new` wheels take the place of, as `key` names it."""
    names = {str(canonicalize_name(item.name)) for item in new}
    there = {item.name: item.version for item in reversed(environment.distributions)}
    replaced = (item for item in environment.distributions if item.name in names)
    found = (_unmet(item.name, text, there, values) for item in replaced for text in item.requires)
    return frozenset(key(item) for item in found if item is not None)


def key(item: Unmet) -> str:
    """What is required by whom, whatever the version of either."""
    return f"{item.distribution.partition(' ')[0]} {item.requirement} {item.found}"


def newly_unmet(
    environment: Environment, after: Mapping[str, str | None], *, values: Mapping[str, str]
) -> tuple[Unmet, ...]:
    """Return requirements of what stays that are met now and would not be.

    `after` gives the new version of each distribution that changes, None for one that goes.
    """
    before = {item.name: item.version for item in reversed(environment.distributions)}
    broken = []
    for item in environment.distributions:
        if item.name in after:
            continue
        for text in item.requires:
            requirement = applicable(text, values)
            name = canonicalize_name(requirement.name) if requirement else ""
            if requirement is None or name not in after or name not in before:
                continue
            new = after[name]
            if meets(requirement, before[name]) and (new is None or not meets(requirement, new)):
                asked = f"{requirement.name}{requirement.specifier}"
                broken.append(Unmet(distribution=f"{item.name} {item.version}", requirement=asked, found=new))
    return tuple(broken)
