"""Values of the model for a real test environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from envmedic.installers.wheels import download_cache
from envmedic.model.facts import Distribution, Environment, Interpreter, Origin
from envmedic.model.plan import Artifact, InstalledReference
from tests.support.index import normalise
from tests.support.venvs import python_of, site_packages
from tests.support.wheels import Wheel

VERSION = ".".join(map(str, sys.version_info[:3]))


def environment(prefix: Path, installed: Sequence[Wheel] = ()) -> Environment:
    """The environment at `prefix` with `installed` in it."""
    return Environment(
        prefix=str(prefix),
        real_prefix=str(prefix.resolve()),
        kind="uv",
        interpreter=Interpreter(path=str(python_of(prefix)), starts=True, version=VERSION),
        distributions=tuple(_distribution(wheel) for wheel in installed),
    )


def _distribution(wheel: Wheel) -> Distribution:
    return Distribution(
        name=normalise(wheel.name),
        version=wheel.version,
        metadata_path=f"lib/site-packages/{wheel.name}-{wheel.version}.dist-info",
        site="lib/site-packages",
        origin=Origin(kind="index"),
    )


def reference(prefix: Path, wheel: Wheel, owner: str = "uv") -> InstalledReference:
    """`wheel` as it is installed at `prefix`."""
    folder = site_packages(prefix) / f"{wheel.name.replace('-', '_')}-{wheel.version}.dist-info"
    return InstalledReference(
        name=wheel.name, version=wheel.version, owner=owner, metadata_path=str(folder.relative_to(prefix))
    )


def artifact(wheel: Wheel, url: str | None = None) -> Artifact:
    """`wheel` as it comes out of a resolution."""
    return Artifact(
        name=wheel.name,
        version=wheel.version,
        filename=wheel.path.name,
        url=url or wheel.path.as_uri(),
        sha256=wheel.sha256,
        size_bytes=wheel.size,
        local_path=str(download_cache.path_of(wheel.sha256, wheel.path.name)),
    )
