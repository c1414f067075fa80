"""Requirements of a locked distribution whose markers hold on its platform."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envmedic import limits
from envmedic.model.lock import Lock, LockedPackage

_SYSTEMS = {
    "linux": ("linux", "Linux", "posix"),
    "osx": ("darwin", "Darwin", "posix"),
    "win": ("win32", "Windows", "nt"),
}
_MACHINES = {"linux-64": "x86_64", "osx-64": "x86_64", "win-64": "AMD64"}


def dependencies(item: LockedPackage, lock: Lock, platform: str) -> dict[str, str]:
    """Requirements without extras on `platform`: normalised names with their version specifiers or ``*``."""
    environment = variables(lock.python, platform)
    found: dict[str, str] = {}
    for wanted in _requirements(item):
        if wanted.marker is None or wanted.marker.evaluate({**environment, "extra": ""}):
            # several requirements on one name add up; ``*`` joins to nothing else
            name, old = canonicalize_name(wanted.name), found.get(canonicalize_name(wanted.name), "")
            found[name] = ",".join(part for part in (old if old != "*" else "", str(wanted.specifier)) if part) or "*"
    return found


def _requirements(item: LockedPackage) -> Iterator[Requirement]:
    """The valid requirements; old metadata has some that no installer of today accepts."""
    for text in item.requires:
        with suppress(InvalidRequirement):
            yield limits.parsed(text)


def variables(python: str, platform: str) -> dict[str, str]:
    """Marker variables of an interpreter of that version on that platform, which has conda's name."""
    system, _, machine = platform.partition("-")
    sys_platform, platform_system, os_name = _SYSTEMS.get(system, (system, system.capitalize(), "posix"))
    # this interpreter's own values are the base: those that the platform does not decide, such as the implementation
    values = {key: str(value) for key, value in default_environment().items()}
    return {
        **values,
        "python_full_version": python,
        "python_version": ".".join(python.split(".")[:2]),
        "implementation_version": python,
        "sys_platform": sys_platform,
        "platform_system": platform_system,
        "os_name": os_name,
        "platform_machine": _MACHINES.get(platform, machine),
    }
