"""Short descriptions of the environments found: a few directory listings each, no program started."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from envmedic.conda_meta import history, pins_and_marks
from envmedic.errors import InputError, NotAnEnvironment
from envmedic.model.answers.environments import Environments, FoundEnvironment
from envmedic.model.conda import CondaTool
from envmedic.probe import layout
from envmedic.probe.prefix import finder, targets
from envmedic.probe.prefix.finder import FoundPrefix
from envmedic.probe.readable import is_directory, names, read_text
from envmedic.probe.text import encodable

_TORCH = re.compile(r"torch-(?P<version>\d[^-]*?)(?:-py\d[.\d]*)?\.(?:dist|egg)-info")
_PYTHON_RECORD = re.compile(r"python-(?P<version>\d[^-]*)-[^-]+\.json")


def find(variables: Mapping[str, str], folder: Path) -> Environments:
    """Every environment that is found from the directory `folder` with these variables."""
    active = _active(variables)
    found: list[FoundEnvironment] = []
    gone: list[str] = []
    for place in finder.everywhere(variables, folder):
        item = _described(place, active)
        if item is None:
            gone.append(str(place.prefix))
        else:
            found.append(item)
    return encodable(Environments(environments=tuple(found), gone=tuple(gone)))


def look(variables: Mapping[str, str], prefix: Path) -> FoundEnvironment:
    """The one at `prefix`, which was named by hand. Raises NotAnEnvironment where none is."""
    item = _described(FoundPrefix(prefix, "its path"), _active(variables))
    if item is None:
        raise NotAnEnvironment(f"{prefix} is no environment any more", hint="Name another one")
    return encodable(item)


def _active(variables: Mapping[str, str]) -> str | None:
    try:
        return os.path.realpath(targets.active(variables))
    except InputError:  # none is
        return None


def _described(place: FoundPrefix, active: str | None) -> FoundEnvironment | None:
    """Its description; None when it is no environment any more."""
    try:
        found = layout.read_layout(place.prefix)
    except NotAnEnvironment:
        return None
    meta = names(place.prefix / "conda-meta")
    return FoundEnvironment(
        prefix=str(place.prefix),
        name=place.name,
        kind=found.kind,
        tool=_tool(place.prefix) if found.kind == "conda" else None,
        python=_first(_PYTHON_RECORD, meta) or found.version,
        torch=_torch(found),
        active=os.path.realpath(place.prefix) == active,
        base=found.kind == "conda" and is_directory(place.prefix / "condabin"),
        found_by=place.found_by,
    )


def _tool(prefix: Path) -> CondaTool:
    return pins_and_marks.made_by(prefix, history.read(read_text(prefix / history.PATH) or ""))


def _torch(found: layout.Layout) -> str | None:
    sites = layout.site_packages(found, found.version)
    return _first(_TORCH, (name for site in sites for name in names(site)))


def _first(pattern: re.Pattern[str], entries: Iterable[str]) -> str | None:
    return next((match["version"] for name in entries if (match := pattern.fullmatch(name))), None)
