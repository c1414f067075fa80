"""Requirements of a locked distribution that mean something in its environment."""

from __future__ import annotations

from collections.abc import Iterator

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
    """Normalised names that it requires there, without extras, each with its version specifier or ``*``."""
    environment = variables(lock.python, platform)
    found: dict[str, str] = {}
    for wanted in _requirements(item):
        if wanted.marker is None or wanted.marker.evaluate({**environment, "extra": ""}):
            name, old = canonicalize_name(wanted.name), found.get(canonicalize_name(wanted.name), "")
            found[name] = ",".join(part for part in (old if old != "*" else "", str(wanted.specifier)) if part) or "*"
    return found


def _requirements(item: LockedPackage) -> Iterator[Requirement]:
    """Those that can be read: old metadata holds some that no installer reads today."""
    for text in item.requires:
        try:
            yield limits.parsed(text)
        except InvalidRequirement:  # noqa: PERF203  # rare
            continue


def variables(python: str, platform: str) -> dict[str, str]:
    """Marker variables of an interpreter of that version on that platform, by conda's word for it."""
    system, _, machine = platform.partition("-")
    sys_platform, platform_system, os_name = _SYSTEMS.get(system, (system, system.capitalize(), "posix"))
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
