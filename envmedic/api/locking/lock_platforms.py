"""Locks for further platforms: conda packages by py-rattler's solver, wheels by uv's resolver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from packaging.utils import canonicalize_name

from envmedic.api.context.observation import stage
from envmedic.api.context.settings import Settings
from envmedic.installers import uv
from envmedic.installers.conda.solve import other_platforms as conda
from envmedic.installers.resolution import other_platforms
from envmedic.locks import platforms
from envmedic.model.facts import Environment, Facts
from envmedic.model.lock import Lock, LockedPackage


def for_platforms(settings: Settings, facts: Facts, found: Lock, names: Sequence[str]) -> Lock:
    """Extend `found` to the platforms `names`. Raises NoSolution, NetworkError, InstallerError or InputError."""
    if facts.environment is None:
        raise AssertionError
    others = [name for name in dict.fromkeys(names) if name != found.platform]
    with stage(settings.stream, "resolve"):
        solved = {name: _Elsewhere(settings, facts, facts.environment, found, name).packages() for name in others}
    joined = platforms.joined(found, solved)
    # another platform may take packages from a channel that this one does not use
    channels = [*found.channels, *(item.channel for item in joined.packages if item.channel)]
    return msgspec.structs.replace(joined, channels=tuple(dict.fromkeys(channels)))


@dataclass(frozen=True)
class _Elsewhere:
    """The lock of one other platform."""

    settings: Settings
    facts: Facts
    environment: Environment
    found: Lock
    name: str

    def packages(self) -> tuple[LockedPackage, ...]:
        """Return the packages that the environment would have there."""
        # conda first: the distributions of its packages are left out of the resolution of wheels
        has_conda = any(item.manager == "conda" for item in self.found.packages)
        by_conda = self._conda() if has_conda else ()
        own = [item for item in self.found.packages if item.manager == "pip"]
        sources = tuple(item for item in own if platforms.is_source(item))
        return (*by_conda, *sources, *self._wheels(own, {item.name for item in by_conda}))

    def _conda(self) -> tuple[LockedPackage, ...]:
        host = platforms.host_of(self.name, self.found, self.facts.host)
        emit, offline = self.settings.stream.emit, self.settings.offline
        return tuple(map(platforms.of_conda, conda.solve(self.environment, host, emit, offline=offline)))

    def _wheels(self, own: Sequence[LockedPackage], by_conda: set[str]) -> tuple[LockedPackage, ...]:
        wheels = [item for item in own if item.kind == "wheel"]
        needed = other_platforms.needed_by_others(self.environment)
        pairs = [(item.name, item.version) for item in wheels]
        # roots are the packages that no other one requires: of the rest, another platform may need others.
        # Without any root (circles of requirements), all are.
        roots = tuple(pair for pair in pairs if pair[0] not in needed) or tuple(pairs)
        wanted = other_platforms.PlatformRequest(
            platform=self.name,
            roots=roots,
            others=tuple(pair for pair in pairs if pair not in roots),
            left_out=tuple(sorted({*self._of_conda(by_conda), *(item.name for item in own if item not in wheels)})),
        )
        files = other_platforms.wheels(
            uv.find_uv(), self.environment, wanted, self.settings.stream.emit, self.settings.torch_index
        )
        requires = {item.name: item.requires for item in wheels}
        return tuple(platforms.of_wheel(file, requires.get(file.name, ())) for file in files)

    def _of_conda(self, names: set[str]) -> set[str]:
        """Return the names of distributions that conda packages provide there."""
        # records of the other platform are not installed: their distributions are those of the same packages here
        here = self.environment.conda.packages if self.environment.conda is not None else ()
        brought = {name for item in here if item.name in names for name in item.distributions}
        return brought | {str(canonicalize_name(name)) for name in names}
