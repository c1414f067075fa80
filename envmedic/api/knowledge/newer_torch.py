"""A torch that is asked for and newer than the tables: the user's index and its own wheel are asked about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from envmedic.api.context.settings import Settings
from envmedic.compat import published, tables, versions
from envmedic.compat.published import CompanionRelease, TorchRelease
from envmedic.compat.torch_family import newer_torch
from envmedic.errors import EnvmedicError
from envmedic.model.answers.family import Offered
from envmedic.model.events import Notice
from envmedic.model.facts import Environment

if TYPE_CHECKING:
    from envmedic.installers.index.http import IndexSession

_COMPANIONS = 3
"""Releases of a companion that are looked at, the newest ones."""


def learn_asked(settings: Settings, environment: Environment, requirements: Sequence[Requirement]) -> None:
    """Learn of the torch that is asked for, where no table has one that meets it."""
    asked = next((str(item.specifier) for item in requirements if canonicalize_name(item.name) == "torch"), None)
    if asked is not None and not any(versions.allows(asked, item) for item in tables.releases()):
        learn(settings, environment, asked)


def learn(settings: Settings, environment: Environment, asked: str = "") -> None:
    """Add the newest torch that `asked` accepts, and that no table has yet, to the tables of this process.

    Where no index or no wheel tells of it, the tables stay as they are, and what is asked is judged by them.
    """
    if settings.offline:
        return
    from envmedic.installers.index import configuration
    from envmedic.installers.index.http import IndexSession
    from envmedic.installers.wheels import data_wheel
    from envmedic.installers.wheels.remote_metadata import NoRanges

    found = configuration.of(environment)
    places = (*settings.find_links, *found.pip.find_links)
    try:
        with closing(IndexSession(found)) as session:
            urls = data_wheel.indexes(found)

            def files(project: str) -> dict[str, tuple[Offered, ...]]:
                every = data_wheel.offered(project, session=session, urls=urls, find_links=places)
                return published.by_release(item for item in every if not item.yanked)

            release = _release(files("torch"), asked, session)
            if release is None:
                return
            companions = [item for name in newer_torch.COMPANIONS for item in _companions(name, files(name), session)]
            triton = files("triton") if published.requirement(release.first, "triton") is not None else {}
            new = {version: wheels for version, wheels in triton.items() if version not in _known_triton()}
            tables.learn(newer_torch.rows(release, companions, new))
    except (EnvmedicError, NoRanges) as error:
        message = f"Whether there is a torch{asked} that the tables don't know was not found out: {error}"
        settings.stream.emit(Notice(code="newer-torch", message=message, level="warning"))
        return
    settings.stream.emit(Notice(code="newer-torch", message=newer_torch.doubt(release.version), level="warning"))


def _release(files: dict[str, tuple[Offered, ...]], spec: str, session: IndexSession) -> TorchRelease | None:
    """Return the newest release that is asked for, with one wheel of it for each platform that was read."""
    from envmedic.installers.wheels import torch_wheel

    early = SpecifierSet(spec).prereleases  # as pip and uv: a pre-release is meant where the words name one
    newer = (item for item in files if newer_torch.is_newer(item) and versions.allows(spec, item))
    fitting = [item for item in newer if early or not versions.parsed(item).is_prerelease]
    if not fitting:
        return None
    release = max(fitting, key=versions.parsed)
    own: dict[str, Offered] = {}
    for file in files[release]:
        place = published.platform(file)
        if place is not None:
            own.setdefault(place, file)
    wheels = {place: torch_wheel.read(file, session, ("version", "builds", "library")) for place, file in own.items()}
    return TorchRelease(version=release, files=files[release], wheels=wheels)


def _companions(name: str, files: dict[str, tuple[Offered, ...]], session: IndexSession) -> Iterator[CompanionRelease]:
    from envmedic.installers.wheels import torch_wheel

    for version in [item for item in files if item not in tables.companions(name)][-_COMPANIONS:]:
        wheel = torch_wheel.read(files[version][0], session)
        yield CompanionRelease(name=name, version=version, files=files[version], wheel=wheel)


def _known_triton() -> set[str]:
    return {row.version for row in tables.torch_tables().triton}
