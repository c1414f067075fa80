"""Version limits that installed distributions put on each other, from metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envmedic.model.facts import Environment, Host

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


class Dependants:
    """What installed distributions require of each other."""

    def __init__(self, environment: Environment, host: Host) -> None:
        self.environment = environment
        self.host = host
        self._markers = _markers(environment, host)

    @cached_property
    def _texts(self) -> dict[str, list[tuple[str, str]]]:
        """Requirements as texts by the distribution that they name."""
        # parsing a Requirement is slow, and callers ask for few of the hundreds: a regular expression sorts them first
        found: dict[str, list[tuple[str, str]]] = {}
        for item in self.environment.distributions:
            for text in item.requires:
                if named := _NAME.match(text):
                    found.setdefault(canonicalize_name(named[1]), []).append((item.name, text))
        return found

    def _applicable(self, name: str) -> Iterator[tuple[str, Requirement]]:
        for owner, text in self._texts.get(name, ()):
            requirement = _parsed_requirement(text)
            if requirement is not None and self._applies(requirement):
                yield owner, requirement

    def _applies(self, requirement: Requirement) -> bool:
        try:
            return requirement.marker is None or requirement.marker.evaluate(self._markers)
        except UndefinedEnvironmentName:  # such as platform_release, which facts do not hold
            return False

    def of(self, name: str, *, apart_from: Iterable[str] = ()) -> tuple[Requirement, ...]:
        """Requirements of other distributions, except `apart_from`, on `name`."""
        spared = {name, *apart_from}  # extras let a distribution require itself
        return tuple(requirement for owner, requirement in self._applicable(name) if owner not in spared)

    def accepting(self, name: str, version: str) -> int:
        """Number of requirements on `name` that the version meets."""
        parsed = parse(version)
        return sum(parsed is not None and item.specifier.contains(parsed, prereleases=True) for item in self.of(name))

    def met(self, by: str, name: str) -> bool:
        """Whether what a distribution requires of another one accepts the installed version, or that is missing."""
        installed = self.environment.distribution(name)
        parsed = parse(installed.version) if installed is not None else None
        if parsed is None:
            return True
        limits = (item.specifier for owner, item in self._applicable(name) if owner == by)
        return all(item.contains(parsed, prereleases=True) for item in limits)

    def asked(self, name: str) -> str:
        """One requirement with all their limits, such as ``numpy<2,>=1.17``."""
        specifiers = {str(part) for item in self.of(name) for part in item.specifier}
        return name + ",".join(sorted(specifiers))


def parse(version: str) -> Version | None:
    """A version that can be compared; None for anything else."""
    try:
        return Version(version)
    except InvalidVersion:
        return None


def _parsed_requirement(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _markers(environment: Environment, host: Host) -> dict[str, str]:
    full = environment.interpreter.version or "3"
    return {
        "extra": "",
        "implementation_name": environment.interpreter.implementation or "cpython",
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": host.machine,
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": full,
        "python_version": ".".join(full.split(".")[:2]),
        "sys_platform": host.system,
    }
