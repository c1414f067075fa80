"""The solver of py-rattler."""

from __future__ import annotations

import asyncio
import datetime as dt
import platform
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envmedic.installers.conda.helper import network, rattler_records

if TYPE_CHECKING:
    from rattler.match_spec.match_spec import MatchSpec
    from rattler.repo_data.gateway import Gateway
    from rattler.repo_data.record import RepoDataRecord
    from rattler.virtual_package.generic import GenericVirtualPackage


def solve(request: dict[str, Any]) -> dict[str, Any]:
    """The packages of the solution; else the reason for none, or the channel that cannot be read."""
    network.give_logins(request["logins"])
    warnings.simplefilter("ignore")  # about relations of channels: not actionable for a user
    return asyncio.run(_Question(request).answer())


@dataclass(frozen=True)
class _Question:
    request: dict[str, Any]

    async def answer(self) -> dict[str, Any]:
        """Solve, without the optional channels that cannot be read."""
        from rattler.exceptions import (
            GatewayError,
            InvalidMatchSpecError,
            SolverError,
        )

        channels = list(self.request["channels"])
        skipped: list[dict[str, str]] = []
        while True:
            try:
                found = await self._by_priority(channels)
            except SolverError as error:  # noqa: PERF203  # a round for each channel that is gone
                return {"unsolvable": str(error), "skipped": skipped}
            except InvalidMatchSpecError as error:
                return {"invalid": str(error), "skipped": skipped}
            except GatewayError as error:
                # py-rattler reports the first channel that fails, and only in the text of its error.
                gone = next((item for item in channels if item["optional"] and _about(str(error), item)), None)
                if gone is None:
                    return {"unreachable": str(error), "skipped": skipped}
                channels.remove(gone)
                skipped.append({"channel": gone["urls"][0], "why": str(error)})
            else:
                return {"packages": rattler_records.describe_records(found), "skipped": skipped}

    async def _by_priority(self, channels: Sequence[dict[str, Any]]) -> list[RepoDataRecord]:
        """Solve by priority; conda's ``flexible`` is strict priority first, and none if that has no solution."""
        from rattler.exceptions import SolverError

        priority = self.request["priority"]
        if priority != "flexible":
            return await self._ask(channels, strict=priority == "strict")
        try:
            return await self._ask(channels, strict=True)
        except SolverError as error:
            try:
                return await self._ask(channels, strict=False)
            except SolverError:
                # The explanation with strict priority is the one about the channels as configured.
                raise error from None

    async def _ask(self, channels: Sequence[dict[str, Any]], *, strict: bool) -> list[RepoDataRecord]:
        from rattler.channel.channel import Channel
        from rattler.channel.channel_priority import ChannelPriority
        from rattler.repo_data.multi_source import MultiSource
        from rattler.solver.solver import solve as ask

        asked = self.request
        sources = [
            Channel(item["urls"][0]) if len(item["urls"]) == 1 else MultiSource(item["name"], item["urls"])
            for item in channels
        ]
        return await ask(
            sources,
            list(_specs(asked["specs"], whole=strict)),
            gateway=_gateway(asked),
            platforms=asked["subdirs"],
            pinned_packages=rattler_records.load_records(asked["pinned"]),
            locked_packages=rattler_records.load_records(asked["preferred"]),
            virtual_packages=_virtual_packages(asked),
            constraints=[_read(text) for text in asked["constraints"]],
            channel_priority=ChannelPriority.Strict if strict else ChannelPriority.Disabled,
            timeout=dt.timedelta(seconds=asked["solver_s"]),
        )


def _specs(texts: Sequence[str], *, whole: bool) -> Iterator[MatchSpec]:
    """The specs; with `whole`, also the bare name of each spec without a channel.

    Without the bare name py-rattler loads only the matching records of a channel, and a stronger channel with only
    other versions would not hide those of a weaker one.
    """
    for text in texts:
        spec = _read(text)
        name = spec.name
        if whole and spec.channel is None and "*" not in str(name.normalized):
            yield _read(name.normalized)
        yield spec


def _read(text: str) -> MatchSpec:
    """A spec in any form that conda accepts."""
    from rattler.match_spec.match_spec import MatchSpec

    return MatchSpec(text, strict=False)


def _about(error: str, channel: dict[str, Any]) -> bool:
    return any(url.rstrip("/") in error for url in channel["urls"])


def _gateway(request: dict[str, Any]) -> Gateway:
    from rattler.repo_data.gateway import Gateway, SourceConfig

    # Offline, the cache counts however old it is.
    config = SourceConfig(cache_action="force-cache-only" if request["offline"] else "cache-or-fetch")
    folder = Path(request["repodata"]) if request["repodata"] else None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return Gateway(
        cache_dir=folder,
        default_config=config,
        client=network.client(request["network"]),
    )


def _virtual_packages(request: dict[str, Any]) -> list[GenericVirtualPackage]:
    from rattler.package.build_string import BuildString
    from rattler.package.package_name import PackageName
    from rattler.version.version import Version
    from rattler.virtual_package.generic import GenericVirtualPackage

    found = [
        GenericVirtualPackage(PackageName(name), Version(version), BuildString(build))
        for name, version, build in request["virtual"]
    ]
    return found + (_processor() if request["this_machine"] else [])


def _processor() -> list[GenericVirtualPackage]:
    """``__archspec`` of this machine, which only py-rattler detects."""
    from rattler.virtual_package.virtual_package import VirtualPackage, VirtualPackageOverrides

    every = (package.into_generic() for package in VirtualPackage.detect(VirtualPackageOverrides()))
    known = [package for package in every if package.name.normalized == "__archspec"]
    if not known:
        raise RuntimeError(f"py-rattler does not know the processor of this {platform.machine()}")
    return known
