"""Editable installs whose source is gone: what they brought, and what leads them to the place where it is now."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from envmedic.model.facts import Defect, Environment
from envmedic.model.pins import Project


def lost(environment: Environment) -> tuple[Defect, ...]:
    """The editable installs without their source, but for sources that moved with the environment."""
    return tuple(item for item in environment.defects if item.kind == "source-gone" and item.now is None)


def modules(environment: Environment) -> tuple[str, ...]:
    """The modules that they brought, by their files; where these tell none, by their names."""
    found = (environment.distribution(item.distribution or "") for item in lost(environment))
    named = (item.import_names or (item.name.replace("-", "_"),) for item in found if item is not None)
    return tuple(dict.fromkeys(name for names in named for name in names))


def advice(environment: Environment) -> tuple[str, ...]:
    """What helps, a sentence for each."""
    return tuple(_way(item, environment) for item in lost(environment))


def _way(item: Defect, environment: Environment) -> str:
    project = environment.project
    there = f"{item.found} has a project of that name: if it is the one, " if item.found is not None else ""
    back = "" if there else "Bring the directory back, or "
    if project is None or not _by_manifest(item, project):
        command = ["envmedic", "uv", "-p", environment.prefix, "pip", "install", "-e", item.found or "DIRECTORY"]
        return f"{there or back + 'install it from where it is: '}`{shlex.join(command)}`"
    place = os.path.relpath(item.found, project.folder) if item.found is not None else "its new path"
    syncs = " && ".join(_syncs(project))
    return f"{there or back}write {place} in {project.folder}/{project.manifest} instead of the former path, then `{syncs}`"


def _by_manifest(item: Defect, project: Project) -> bool:
    """Whether the project's own tool brings it again from where the manifest says that it is."""
    named = any(source.name == item.distribution and source.kind == "path" for source in project.sources)
    return named or project.tool in {"poetry", "pdm"}


def _syncs(project: Project) -> Iterator[str]:
    if project.tool != "uv":  # which makes its lock anew by itself
        yield f"{project.tool} lock"
    yield shlex.join(project.sync)
