"""Channels: names resolved to addresses by conda's configuration.

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
"""Channels of conda without configuration."""
_BUILT_IN = {"pkgs/pro": "https://repo.anaconda.com", "pkgs/main": "https://repo.anaconda.com",
             "pkgs/r": "https://repo.anaconda.com"}  # fmt: skip
_TOKEN = re.compile(r"/t/[^/]+")


@dataclass(frozen=True)
class ChannelSource:
    """A channel, or several that count as one."""

    name: str
    urls: tuple[str, ...]
    """Without subdirectory, with any credentials, which never leave this package."""
    optional: bool = False
    """Whether it is not configured, but the origin of an installed package."""


@dataclass(frozen=True)
class Names:
    """The configured meaning of channel names."""

    alias: str = ALIAS
    custom: tuple[tuple[str, str], ...] = ()
    """Name → address to which the name is appended, the longest name first."""
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Name → channels."""

    def source(self, channel: str, *, optional: bool = False) -> ChannelSource:
        """The channel for a name, an address or a path."""
        members = dict(self.groups).get(channel)
        if members:
            return ChannelSource(channel, tuple(dict.fromkeys(self.address(item) for item in members)), optional)
        return ChannelSource(channel, (self.address(channel),), optional)

    def address(self, channel: str) -> str:
        """URL of a channel, without subdirectory and trailing slash."""
        plain = without_subdir(channel.strip())
        if "://" in plain:
            return plain
        if plain.startswith(("/", "./", "../", "~")):
            return xdg.expanded(plain).absolute().as_uri()
        # The longest name first, as in conda: a custom channel "a/b" must win over "a".
        for name, base in self.custom:
            if plain == name or plain.startswith(f"{name}/"):
                return f"{base.rstrip('/')}/{plain}"
        return f"{self.alias.rstrip('/')}/{plain}"


def read_names(settings: Mapping[str, Any]) -> Names:
    """Meaning of names by `settings`, in the form of configuration files or of ``conda config --show --json``."""
    custom = {**_BUILT_IN, **{str(name): _base(value) for name, value in settings.get("custom_channels", {}).items()}}
    groups = {str(name): tuple(map(_whole, value)) for name, value in settings.get("custom_multichannels", {}).items()}
    default = settings.get("default_channels")
    # `conda config --show` lists defaults among the multichannels as well; default_channels is what the user sets.
    if default is not None or "defaults" not in groups:
        groups["defaults"] = tuple(map(_whole, DEFAULTS if default is None else default))
    return Names(
        alias=_base(settings.get("channel_alias") or ALIAS),
        custom=tuple(sorted(custom.items(), key=lambda item: -len(item[0]))),
        groups=tuple((name, members) for name, members in groups.items() if members),
    )


def _whole(value: str | Mapping[str, Any]) -> str:
    """Name or address of a channel; conda's JSON has it as separate parts."""
    if isinstance(value, str):
        return value
    name = value.get("name")
    base = _base(value)
    return f"{base}/{name}" if name else base


def _base(value: str | Mapping[str, Any]) -> str:
    """Address without the name, with login and token; conda appends a token at the end."""
    if isinstance(value, str):
        whole = value if "://" in value or not value else f"https://{value}"
        found = _TOKEN.search(whole) if not whole.startswith("file:") else None
        return whole if found is None else f"{_TOKEN.sub('', whole, count=1).rstrip('/')}{found[0]}"
    login = f"{value['auth']}@" if value.get("auth") else ""
    token = f"/t/{value['token']}" if value.get("token") else ""
    location = str(value.get("location") or "").rstrip("/")
    # conda's JSON drops the first slash of a local path.
    if value.get("scheme") == "file" and location and not location.startswith("/"):
        location = f"/{location}"
    return f"{value.get('scheme') or 'https'}://{login}{location}{token}"


def unique(sources: Sequence[ChannelSource]) -> tuple[ChannelSource, ...]:
    """`sources` without those all of whose addresses belong to earlier ones."""
    found: list[ChannelSource] = []
    for item in sources:
        known = {url for other in found for url in other.urls}
        # One new address suffices to keep a channel: a group may be known only in part.
        if not set(item.urls) <= known:
            found.append(item)
    return tuple(found)
