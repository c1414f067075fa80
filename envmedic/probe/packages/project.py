"""The project that an environment belongs to, from the manifest and lock beside it; no tool of it is run.

Formats: https://docs.astral.sh/uv/reference/settings/, https://python-poetry.org/docs/pyproject/,
https://pdm-project.org/latest/reference/pep621/, https://hatch.pypa.io/latest/config/environment/overview/.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from envmedic.conda_meta import pins_and_marks
from envmedic.model.pins import Project, ProjectIndex, ProjectSource, ProjectTool
from envmedic.probe.packages.user_pins import parsed_toml
from envmedic.probe.readable import is_file, names, read_text
from envmedic.redact import redact_url

MANIFEST = "pyproject.toml"
_SYNC: dict[ProjectTool, tuple[str, ...]] = {
    "uv": ("uv", "sync"),
    "poetry": ("poetry", "install"),
    "pdm": ("pdm", "sync"),
    "pixi": ("pixi", "install"),
    "conda-workspaces": ("conda", "workspace", "install"),
}
_EXACT = frozenset({"uv", "pixi", "conda-workspaces"})
"""Tools whose command removes what the lock does not have."""
_LOCKS: dict[ProjectTool, str] = {"uv": "uv.lock", "poetry": "poetry.lock", "pdm": "pdm.lock"}
_CONDA_MANIFESTS = ("environment.yml", "environment.yaml")
_CONDA_LOCKS = ("conda-lock.yml", "conda-lock.yaml")


def observe(prefix: Path, variables: Mapping[str, str] = os.environ) -> Project | None:
    """Return the project that the environment at `prefix` belongs to; None where no file tells of one."""
    owned = pins_and_marks.project(prefix)
    if owned is not None:
        return _of_conda_tool(owned)
    folder = prefix.parent
    if not is_file(prefix / "pyvenv.cfg"):
        return _of_conda_files(prefix, folder)
    content = parsed_toml(read_text(folder / MANIFEST, follow=True))
    tool = _tool(folder, content)
    if tool is None:
        listed = next(
            (name for name in names(folder) if name.startswith("requirements") and name.endswith(".txt")), None
        )
        return Project(tool="pip", folder=str(folder), manifest=listed) if listed is not None else None
    lock = _LOCKS.get(tool)
    own = prefix == _place_of_uv(folder, variables) if tool == "uv" else prefix.name == ".venv"
    return Project(
        tool=tool,
        folder=str(folder),
        manifest=MANIFEST if content or is_file(folder / MANIFEST) else None,
        lock=lock if lock is not None and is_file(folder / lock) else None,
        sync=_SYNC.get(tool, ()) if own else (),
        exact=tool in _EXACT,
        groups=tuple(dict.fromkeys(_groups(content))),
        sources=tuple(_sources(content, tool)),
        indexes=tuple(_indexes(folder, content, tool)),
    )


def _of_conda_tool(owned: pins_and_marks.CondaProject) -> Project | None:
    if owned.folder is None:
        return None
    folder = Path(owned.folder)
    manifests = ("pixi.toml", MANIFEST) if owned.tool == "pixi" else ("conda.toml", "pixi.toml", MANIFEST)
    lock = "pixi.lock" if owned.tool == "pixi" else "conda.lock"
    named = ("--environment", owned.environment) if owned.environment != "default" else ()
    manifest = next((name for name in manifests if is_file(folder / name)), None)
    content = parsed_toml(read_text(folder / manifest, follow=True)) if manifest is not None else {}
    content = _table(content, "tool", "pixi") if manifest == MANIFEST else content
    return Project(
        tool=owned.tool,
        folder=owned.folder,
        manifest=manifest,
        lock=lock if is_file(folder / lock) else None,
        sync=(*_SYNC[owned.tool], *named),
        exact=True,
        groups=tuple(_table(content, "environments")),
    )


def _of_conda_files(prefix: Path, folder: Path) -> Project | None:
    """A project that keeps its conda environment beside its files; one among other environments has none."""
    if folder.name == "envs":
        return None
    manifest = next((name for name in _CONDA_MANIFESTS if is_file(folder / name)), None)
    lock = next((name for name in _CONDA_LOCKS if is_file(folder / name)), None)
    if lock is not None:
        sync = ("conda-lock", "install", "--prefix", str(prefix), lock)
        return Project(tool="conda-lock", folder=str(folder), manifest=manifest, lock=lock, sync=sync, exact=True)
    if manifest is None:
        return None
    update = ("conda", "env", "update", "--prefix", str(prefix), "--file", manifest)
    return Project(tool="conda", folder=str(folder), manifest=manifest, sync=update)


def _tool(folder: Path, content: Mapping[str, Any]) -> ProjectTool | None:
    """The tool of a project: by its lock first, then by its table in the manifest."""
    tables = _table(content, "tool")
    for tool, lock in _LOCKS.items():
        if is_file(folder / lock):
            return tool
    candidates: tuple[ProjectTool, ...] = ("uv", "poetry", "pdm", "hatch")
    return next((tool for tool in candidates if tool in tables), None)


def _place_of_uv(folder: Path, variables: Mapping[str, str]) -> Path:
    """Where uv keeps the environment of a project."""
    return folder / (variables.get("UV_PROJECT_ENVIRONMENT") or ".venv")


def _groups(content: Mapping[str, Any]) -> Iterator[str]:
    for path in (
        ("dependency-groups",),
        ("project", "optional-dependencies"),
        ("tool", "poetry", "group"),
        ("tool", "poetry", "extras"),
        ("tool", "pdm", "dev-dependencies"),
        ("tool", "hatch", "envs"),
    ):
        yield from _table(content, *path)


def _sources(content: Mapping[str, Any], tool: ProjectTool) -> Iterator[ProjectSource]:
    """Where a tool's own table says that distributions come from; one has several where they depend on markers."""
    if tool == "uv":
        yield from _stated(_table(content, "tool", "uv", "sources"), "index")
    if tool == "poetry":
        groups = _table(content, "tool", "poetry", "group")
        for table in (
            _table(content, "tool", "poetry", "dependencies"),
            _table(content, "tool", "poetry", "dev-dependencies"),
            *(_table(groups, name, "dependencies") for name in groups),
        ):
            yield from _stated(table, "source")
    if tool == "pdm":
        listed = _table(content, "tool", "pdm").get("source")
        for item in listed if isinstance(listed, list) else ():
            names = item.get("include_packages") if isinstance(item, dict) else None
            for name in names if isinstance(names, list) else ():
                yield ProjectSource(name=str(name), kind="index", value=str(item.get("name", "")))


def _stated(table: Mapping[str, Any], index: str) -> Iterator[ProjectSource]:
    """The entries of a table by distribution; `index` is the key that names an index."""
    for name, value in table.items():
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                continue
            for kind in ("index", "git", "url", "path"):
                stated = item.get(index if kind == "index" else kind)
                if isinstance(stated, str):
                    yield ProjectSource(name=name, kind=kind, value=redact_url(stated))
            if item.get("workspace") is True:
                yield ProjectSource(name=name, kind="workspace", value="")


def _indexes(folder: Path, content: Mapping[str, Any], tool: str) -> Iterator[ProjectIndex]:
    if tool == "uv" and is_file(folder / "uv.toml"):  # uv then ignores the manifest's own table
        listed = parsed_toml(read_text(folder / "uv.toml", follow=True)).get("index")
    else:
        listed = _table(content, "tool", tool).get("index" if tool == "uv" else "source")
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict) and isinstance(item.get("url"), str):
            yield ProjectIndex(
                name=str(item.get("name", "")),
                url=redact_url(item["url"]),
                explicit=item.get("explicit") is True or item.get("priority") == "explicit",
                default=item.get("default") is True
                or item.get("priority", "primary" if tool == "poetry" else "") == "primary"
                or (tool == "pdm" and item.get("name") == "pypi"),
            )


def _table(content: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    found: object = content
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
