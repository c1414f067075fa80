"""The user's conda configuration for one environment: by conda itself, else from its files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envmedic import xdg
from envmedic.conda_meta import history, small_files, urls
from envmedic.errors import InstallerError
from envmedic.installers.conda.configuration import channels, client, condarc
from envmedic.installers.conda.configuration.channels import ChannelSource
from envmedic.model.conda import CondaPackage

Verify = bool | str
"""Whether to check certificates, or the file of trusted ones."""


@dataclass(frozen=True)
class CondaConfiguration:
    """Channels, priority, pins and connection settings. Addresses may hold credentials."""

    sources: tuple[ChannelSource, ...]
    """The strongest first."""
    priority: str = "flexible"
    """``strict``, ``flexible`` or ``disabled``."""
    pinned: tuple[str, ...] = ()
    pin_places: Mapping[str, str] = field(default_factory=dict)
    """File and line, or the variable, of each pin whose place is known."""
    offline: bool = False
    verify: Verify = True
    proxies: tuple[tuple[str, str], ...] = ()
    """Scheme → address."""
    package_folders: tuple[Path, ...] = ()
    """conda's package caches."""
    client: Path | None = None
    notes: tuple[str, ...] = ()
    names: channels.Names = field(default_factory=channels.Names)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Address of every channel, with credentials."""
        return tuple(url for source in self.sources for url in source.urls)

    @property
    def network(self) -> dict[str, Any]:
        """Connection settings for the helper."""
        return {"verify": self.verify, "proxies": dict(self.proxies)}

    def spec(self, text: str) -> str:
        """A match spec with the name of its channel replaced by the configured address."""
        channel, mark, rest = text.partition("::")
        # py-rattler knows no aliases and compares addresses. A multichannel has several: its name stays.
        meant = self.names.source(channel).urls if mark and "/" not in channel else ()
        return f"{urls.without_credentials(meant[0])}::{rest}" if len(meant) == 1 else text

    def with_login(self, url: str) -> str:
        """`url` of a package, with the credentials of its channel."""
        for address in self.addresses:
            plain = urls.without_credentials(address)
            if plain != address and url.startswith(f"{plain.rstrip('/')}/"):
                return address.rstrip("/") + url[len(plain.rstrip("/")) :]
        return url


def read(
    prefix: Path, packages: tuple[CondaPackage, ...] = (), environ: Mapping[str, str] = os.environ
) -> CondaConfiguration:
    """The configuration for the environment at `prefix`, in which `packages` are installed. Raises InputError."""
    program = client.find(prefix, environ)
    settings, notes = _settings(program, prefix, environ)
    names = channels.read_names(settings)
    root = client.root_of(program, prefix)
    pins = tuple(settings.get("pinned_packages", ()))
    return CondaConfiguration(
        sources=_sources(settings, names, prefix, packages),
        priority=_priority(settings.get("channel_priority")),
        pinned=pins,
        pin_places=condarc.pin_places(prefix, root, environ) if pins else {},
        offline=settings.get("offline") is True,
        verify=_verify(settings.get("ssl_verify", True)),
        proxies=tuple(sorted(_proxies(settings.get("proxy_servers", {})))),
        package_folders=_package_folders(settings, root, environ),
        client=program,
        notes=notes,
        names=names,
    )


def _settings(program: Path | None, prefix: Path, environ: Mapping[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    if program is not None:
        try:
            return client.settings(program, prefix), notes
        except InstallerError as error:  # conda itself may be what is broken
            notes = (f"{error.summary}: its configuration files were read instead",)
    return condarc.read(prefix, client.root_of(program, prefix), environ), notes


def _sources(
    settings: Mapping[str, Any], names: channels.Names, prefix: Path, packages: tuple[CondaPackage, ...]
) -> tuple[ChannelSource, ...]:
    """Channels of ``-c`` in earlier commands, then the configured ones, then other origins of installed packages.

    conda gives channels of a command line priority over the configured ones, and records them only in the history.
    """
    # The channel of most packages first: among the unconfigured ones, the order is their priority.
    counts = Counter(item.channel for item in packages if item.channel)
    installed = [names.source(channel, optional=True) for channel, _ in counts.most_common()]
    have = {url for source in installed for url in source.urls}
    named = [source for word in _on_command_lines(prefix) if set((source := names.source(word)).urls) & have]
    earlier = [ChannelSource(item.name, item.urls, optional=True) for item in named]
    words = settings.get("channels", ("defaults",))
    configured = [names.source(word) for word in words]
    if list(words) == ["defaults"] and installed and not have.intersection(*(item.urls for item in configured)):
        configured = []  # only conda's default, from which nothing here was installed
    # A channel that is both configured and in the history keeps its configured place.
    strong = [source for source in earlier if not any(set(source.urls) <= set(own.urls) for own in configured)]
    allowed = {url for word in settings.get("allowlist_channels") or () for url in names.source(word).urls}
    every = channels.unique([*strong, *configured, *installed])
    return tuple(item for item in every if not allowed or set(item.urls) <= allowed)


def _on_command_lines(prefix: Path) -> Iterator[str]:
    """Channels given with ``-c`` in the commands of the history, the latest command first."""
    text = (small_files.read(prefix / history.PATH) or b"").decode("utf-8", "replace")
    for revision in reversed(history.read(text)):
        words = iter(revision.command)
        for word in words:
            if word in {"-c", "--channel"}:
                yield next(words, "")
            elif word.startswith("--channel="):
                yield word.partition("=")[2]


def _priority(value: object) -> str:
    """Channel priority; older releases of conda wrote true and false."""
    if isinstance(value, bool):
        return "flexible" if value else "disabled"
    word = str(value or "flexible").lower()
    return word if word in {"strict", "flexible", "disabled"} else "flexible"


def _verify(value: object) -> Verify:
    if value is False or (isinstance(value, str) and value.lower() == "false"):
        return False
    # conda also allows the word "truststore", which counts as true here.
    return value if isinstance(value, str) and "/" in value else True


def _proxies(value: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for scheme, url in value.items():
        if scheme in {"http", "https"} and url:
            yield scheme, str(url)


def _package_folders(settings: Mapping[str, Any], root: Path | None, environ: Mapping[str, str]) -> tuple[Path, ...]:
    home = xdg.home(environ)
    named = [xdg.expanded(str(item)) for item in settings.get("pkgs_dirs", ())]
    # conda's own defaults; files in them are only read, and only whole packages with the right hash.
    usual = [home / ".conda" / "pkgs"] if named else [*([root / "pkgs"] if root else []), home / ".conda" / "pkgs"]
    return tuple(dict.fromkeys([*named, *usual]))
