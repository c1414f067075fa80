"""Channels by name and by address, as conda's configuration explains names.

Rules: https://docs.conda.io/projects/conda/en/stable/user-guide/configuration/settings.html (channel_alias,
custom_channels, custom_multichannels, default_channels).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envmedic import xdg
from envmedic.conda_meta.urls import without_subdir

ALIAS = "https://conda.anaconda.org"
DEFAULTS = ("https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r")
"""What conda asks where nothing is configured."""
_BUILT_IN = {"pkgs/pro": "https://repo.anaconda.com", "pkgs/main": "https://repo.anaconda.com",
             "pkgs/r": "https://repo.anaconda.com"}  # fmt: skip
_TOKEN = re.compile(r"/t/[^/]+")


@dataclass(frozen=True)
class ChannelSource:
    """A channel, or several that count as one."""

    name: str
    urls: tuple[str, ...]
    """Without subdirectory; with credentials where there are some: they never leave this package."""
    optional: bool = False
    """Whether nobody configured it: some installed package came from there."""


@dataclass(frozen=True)
class Names:
    """What names of channels mean here."""

    alias: str = ALIAS
    custom: tuple[tuple[str, str], ...] = ()
    """Name → the address that the name is put behind, the longest name first."""
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Name → channels."""

    def source(self, channel: str, *, optional: bool = False) -> ChannelSource:
        """The channel that a name, an address or a path means."""
        members = dict(self.groups).get(channel)
        if members:
            return ChannelSource(channel, tuple(dict.fromkeys(self.address(item) for item in members)), optional)
        return ChannelSource(channel, (self.address(channel),), optional)

    def address(self, channel: str) -> str:
        """Its URL, without subdirectory and without a slash at its end."""
        plain = without_subdir(channel.strip())
        if "://" in plain:
            return plain
        if plain.startswith(("/", "./", "../", "~")):
            return xdg.expanded(plain).absolute().as_uri()
        for name, base in self.custom:
            if plain == name or plain.startswith(f"{name}/"):
                return f"{base.rstrip('/')}/{plain}"
        return f"{self.alias.rstrip('/')}/{plain}"


def names(settings: Mapping[str, Any]) -> Names:
    """Read what `settings` explain, in the words of configuration files or of ``conda config --show --json``."""
    custom = {**_BUILT_IN, **{str(name): _base(value) for name, value in settings.get("custom_channels", {}).items()}}
    groups = {str(name): tuple(map(_whole, value)) for name, value in settings.get("custom_multichannels", {}).items()}
    default = settings.get("default_channels")
    if default is not None or "defaults" not in groups:
        groups["defaults"] = tuple(map(_whole, DEFAULTS if default is None else default))
    return Names(
        alias=_base(settings.get("channel_alias") or ALIAS),
        custom=tuple(sorted(custom.items(), key=lambda item: -len(item[0]))),
        groups=tuple((name, members) for name, members in groups.items() if members),
    )


def _whole(value: str | Mapping[str, Any]) -> str:
    """A channel's name or address; conda's JSON has it taken apart."""
    if isinstance(value, str):
        return value
    name = value.get("name")
    base = _base(value)
    return f"{base}/{name}" if name else base


def _base(value: str | Mapping[str, Any]) -> str:
    """The address before the name, with login and token; conda puts a token last."""
    if isinstance(value, str):
        whole = value if "://" in value or not value else f"https://{value}"
        found = _TOKEN.search(whole)
        return whole if found is None else f"{_TOKEN.sub('', whole, count=1).rstrip('/')}{found[0]}"
    login = f"{value['auth']}@" if value.get("auth") else ""
    token = f"/t/{value['token']}" if value.get("token") else ""
    location = str(value.get("location") or "").rstrip("/")
    if value.get("scheme") == "file" and location and not location.startswith("/"):
        location = f"/{location}"
    return f"{value.get('scheme') or 'https'}://{login}{location}{token}"


def unique(sources: Sequence[ChannelSource]) -> tuple[ChannelSource, ...]:
    """`sources` without those whose every address an earlier one has."""
    found: list[ChannelSource] = []
    for item in sources:
        known = {url for other in found for url in other.urls}
        if not set(item.urls) <= known:
            found.append(item)
    return tuple(found)
