"""Effects of a conda change on distributions, and its rows in a plan. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from envmedic.conda_meta import specs
from envmedic.model.conda import CondaArtifact, CondaChange, CondaPackage, CondaReference
from envmedic.model.facts import Environment
from envmedic.model.plan import Change
from envmedic.planner.conda_split.conda_constraints import brings


def distributions_of(item: CondaArtifact, environment: Environment) -> tuple[str, ...]:
    """Return the Python distributions in a package."""
    depends = item.metadata.get("depends", ())
    names = {specs.name_of(text) for text in depends if isinstance(text, str)}
    # repodata does not list distributions; a dependency on Python is the best sign that a package contains one
    python = bool(names & {"python", "python_abi"})
    return brings(item.name, environment, item.distributions, python=python)


def after(change: CondaChange | None, environment: Environment) -> dict[str, str | None]:
    """Return the version after the change of each distribution that it touches, None for a removed one."""
    if change is None:
        return {}
    found: dict[str, str | None] = {name: None for item in change.remove for name in item.distributions}
    # second, so that an update, which is a removal and an installation, keeps its new version
    found |= {name: item.version for item in change.install for name in distributions_of(item, environment)}
    return found


def rows(change: CondaChange | None, environment: Environment, wheels: Collection[str]) -> list[Change]:
    """Return REMOVE, CHANGE and INSTALL of conda packages, in this order, by name.

    A removed package whose distributions all come as `wheels` has no row: the rows of the wheels show it.
    """
    if change is None:
        return []
    gone = {item.name: item for item in change.remove}
    come = {item.name: item for item in change.install}
    installed = {item.name: item for item in environment.conda.packages} if environment.conda is not None else {}
    told = [
        _removed(gone[name], installed.get(name))
        for name in sorted(gone.keys() - come.keys())
        if not gone[name].distributions or not set(gone[name].distributions) <= set(wheels)
    ]
    ordered = sorted(come, key=lambda name: (name not in gone, name))
    return told + [_come(come[name], gone.get(name), environment) for name in ordered]


def _removed(item: CondaReference, package: CondaPackage | None) -> Change:
    return Change(
        kind="remove",
        name=item.name,
        before=item.version,
        owner="conda",
        size_bytes=package.size_bytes if package is not None else None,
        by="conda",
        before_build=item.build,
        channel=package.channel if package is not None else "",
        distributions=item.distributions,
    )


def _come(item: CondaArtifact, before: CondaReference | None, environment: Environment) -> Change:
    return Change(
        kind="install" if before is None else "change",
        name=item.name,
        before=before.version if before is not None else None,
        after=item.version,
        owner="conda",
        size_bytes=item.size_bytes,
        by="conda",
        before_build=before.build if before is not None else "",
        after_build=item.build,
        channel=item.channel,
        distributions=distributions_of(item, environment),
    )


def packages_of(change: CondaChange | None) -> Mapping[str, str]:
    """Return the conda package of each distribution whose package is removed and not updated."""
    if change is None:
        return {}
    come = {item.name for item in change.install}
    return {name: item.name for item in change.remove if item.name not in come for name in item.distributions}
