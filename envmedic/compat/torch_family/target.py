"""The host and interpreter that a set must fit, parsed once from a query."""

from __future__ import annotations

import msgspec
from packaging.markers import Marker

from envmedic.compat import versions
from envmedic.model.answers.family import FamilyQuery

UNKNOWN_PATCH = 99
"""Patch level assumed where only ``major.minor`` is given: requirements exclude early ones."""


class FamilyTarget(msgspec.Struct, frozen=True):
    """A `FamilyQuery` with its values parsed. `driver` is () when there is none or it cannot be read."""

    query: FamilyQuery
    python: str
    """``major.minor``."""
    full_python: str
    tag: str
    """`python`, with ``t`` for a free-threaded build."""
    platform: str
    """``linux_x86_64``."""
    driver: tuple[int, ...]
    capabilities: tuple[str, ...]
    """Sorted and distinct; invalid ones count in `unknown_gpus`."""
    unknown_gpus: int
    torch: str | None = None
    """Installed torch, with its local label."""

    @property
    def has_gpus(self) -> bool:
        """Whether any GPU is visible, of known capability or not."""
        return bool(self.capabilities) or self.unknown_gpus > 0

    def installed(self, member: str) -> str | None:
        """Public version of an installed member."""
        full = self.query.installed.get(member)
        return versions.public(full) if full else None

    def marker(self, text: str | None) -> bool:
        """Whether a marker on the Python version, system or machine holds here.

        No marker holds for an interpreter without a CPython version, which no wheel fits either.
        """
        if not text:
            return True
        if versions.version(self.python) is None:
            return False
        environment = {
            "python_version": self.python,
            "python_full_version": self.full_python,
            "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}.get(self.query.system, ""),
            "platform_machine": self.query.machine,
            "sys_platform": self.query.system,
        }
        return Marker(text).evaluate(environment)


def target_of(query: FamilyQuery) -> FamilyTarget:
    """Return `query` as a target."""
    parts = query.python.split(".")
    short = ".".join(parts[:2])
    known = {text for text in query.capabilities if versions.capability(text)}
    return FamilyTarget(
        query=query,
        python=short,
        # a high patch level: `!=3.9.7` and the like exclude early patches, which a current interpreter is not
        full_python=query.python if len(parts) > len(["major", "minor"]) else f"{short}.{UNKNOWN_PATCH}",
        tag=short + ("t" if query.free_threaded else ""),
        platform=f"{query.system}_{query.machine}",
        driver=versions.dotted(query.driver) if query.driver else (),
        capabilities=tuple(sorted(known, key=lambda text: versions.capability(text) or (0, 0, ""))),
        unknown_gpus=query.unknown_capabilities + sum(text not in known for text in query.capabilities),
        torch=query.installed.get("torch"),
    )
