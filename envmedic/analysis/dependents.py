"""Which version of a distribution the others in an environment ask for. By metadata alone."""

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
        self._environment = environment
        self._markers = _markers(environment, host)

    @cached_property
    def _texts(self) -> dict[str, list[tuple[str, str]]]:
        """By what they name: of the hundreds of an environment few are asked for, and need to be read."""
        found: dict[str, list[tuple[str, str]]] = {}
        for item in self._environment.distributions:
            for text in item.requires:
                if named := _NAME.match(text):
                    found.setdefault(canonicalize_name(named[1]), []).append((item.name, text))
        return found

    def _on(self, name: str) -> Iterator[tuple[str, Requirement]]:
        for owner, text in self._texts.get(name, ()):
            requirement = _read(text)
            if requirement is not None and self._applies(requirement):
                yield owner, requirement

    def _applies(self, requirement: Requirement) -> bool:
        try:
            return requirement.marker is None or requirement.marker.evaluate(self._markers)
        except UndefinedEnvironmentName:
            return False

    def of(self, name: str, *, apart_from: Iterable[str] = ()) -> tuple[Requirement, ...]:
        """What other distributions, some left out, require of `name`."""
        spared = {name, *apart_from}
        return tuple(requirement for owner, requirement in self._on(name) if owner not in spared)

    def accepting(self, name: str, version: str) -> int:
        """How many requirements on `name` that version meets."""
        parsed = parse(version)
        return sum(parsed is not None and item.specifier.contains(parsed, prereleases=True) for item in self.of(name))

    def asked(self, name: str) -> str:
        """A requirement that says what all of them ask for, such as ``numpy<2,>=1.17``."""
        specifiers = {str(part) for item in self.of(name) for part in item.specifier}
        return name + ",".join(sorted(specifiers))


def parse(version: str) -> Version | None:
    """A version that can be compared; None for anything else."""
    try:
        return Version(version)
    except InvalidVersion:
        return None


def _read(text: str) -> Requirement | None:
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
