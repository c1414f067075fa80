"""Manifest and lock of a project that agree with a repair, made by its own tool in a copy of both files.

What a manifest asks for itself is asked for anew where it stands (``uv add``, ``poetry add``, ``pdm add``), in its group
and its member of a workspace. What comes with it, where that alone does not bring the same releases, is limited by uv's
``constraint-dependencies``, and locked again; the other tools have no such limits, and are asked for it as for a direct
dependency.
https://docs.astral.sh/uv/concepts/projects/dependencies/,
https://docs.astral.sh/uv/reference/settings/#constraint-dependencies, https://python-poetry.org/docs/cli/#add,
https://pdm-project.org/latest/usage/dependency/.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from envmedic import safe_io, toml
from envmedic.installers.projects import project_copy, project_tools
from envmedic.installers.projects.project_copy import LARGEST, NoEditError, table
from envmedic.model.facts import Environment
from envmedic.model.pins import EditedFile, Project, ProjectEdit
from envmedic.redact import redact_text
from envmedic.wording import unified

_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHOWN = 40
"""Releases of a lock that are told by name."""
_TOOLS = frozenset({"uv", "poetry", "pdm"})


class _Place(NamedTuple):
    """Where a manifest asks for a distribution."""

    manifest: str
    option: tuple[str, ...] = ()
    """That of ``add``: ``--group dev``."""


class _Way(NamedTuple):
    """How a project is made to ask for something."""

    commands: tuple[tuple[str, ...], ...]
    """Those that state it where a manifest asks for it."""
    limits: tuple[str, ...]
    """Requirements that are limited because they stand nowhere."""


def make(
    environment: Environment, requirements: Sequence[str], after: Mapping[str, str | None], *, offline: bool
) -> ProjectEdit:
    """Return the edit after which the project locks `requirements`, and everything that a repair leaves installed.

    `after` has the new version of each changed distribution by normalised name, None for a removed one. Raises
    NoEditError, and RepairPackageMissing without uv.
    """
    project = environment.project
    if project is None or project.manifest is None or project.lock is None:
        raise NoEditError("there is no lock beside the environment")
    if project.tool not in _TOOLS:
        raise NoEditError(f"envmedic edits projects of uv, poetry and PDM, and this is one of {project.tool}")
    folder, lock = Path(project.folder), project.lock
    names = (project.manifest, *project_copy.manifests(project, project_copy.parsed(folder / lock)), lock)
    before = {name: _read(folder / name) for name in names}
    manifests = {name: toml.loads(before[name]) for name in names if name != lock}
    asked = {canonicalize_name(Requirement(text).name): text for text in requirements}
    program = project_tools.ProjectProgram(
        project.tool,
        project_tools.find(project.tool, Path(environment.real_prefix)),
        f"{environment.prefix}/bin/python",
        {},
        offline,
        project_tools.TIMEOUT_S,
    )

    def written(way: _Way) -> dict[str, str]:
        texts = _written(project, program, way, names)
        _require_agreement(project, environment, after, toml.loads(before[lock]), toml.loads(texts[lock]))
        return texts

    way, new = _first(_ways(project, manifests, asked), written)
    files = tuple(
        EditedFile(
            name=file,
            before_sha256=_sha256(before[file]),
            after_sha256=_sha256(new[file]),
            after=new[file],
            diff=_of_lock(before[file], new[file]) if file == lock else unified(file, before[file], new[file]),
        )
        for file in names
        if new[file] != before[file]
    )
    if not files:
        raise NoEditError(f"{project.tool} finds nothing to change in them")
    return ProjectEdit(folder=project.folder, command=way.commands[0], more=way.commands[1:], files=files)


def _first(ways: tuple[_Way, ...], written: Callable[[_Way], dict[str, str]]) -> tuple[_Way, dict[str, str]]:
    """The first way that can be written, and what it writes. Raises NoEditError of the last one."""
    *others, last = ways
    for way in others:
        with suppress(NoEditError):
            return way, written(way)
    return last, written(last)


def _written(
    project: Project, program: project_tools.ProjectProgram, way: _Way, names: Sequence[str]
) -> dict[str, str]:
    """What the files say after the commands of a way, run in a copy."""
    with project_copy.copied(project) as copy:
        if way.limits:
            _limit(copy / (project.manifest or ""), way.limits)
        for command in way.commands:
            done = program.write(copy, command[1], command[2:])
            if done.returncode != 0:
                raise NoEditError(f"`{' '.join(command)}` fails: {project_tools.said(done)}")
        return {file: _read(copy / file) for file in names}


def _ways(
    project: Project, manifests: Mapping[str, Mapping[str, Any]], asked: Mapping[NormalizedName, str]
) -> tuple[_Way, ...]:
    """The ways to state `asked`: first only what a manifest asks for itself, which mostly brings the rest in the same releases."""
    stated = {own for _, own in _stated(project, manifests)}
    own = {name: text for name, text in asked.items() if name in stated}
    wanted = (own, asked) if own and len(own) < len(asked) else (asked,)
    return tuple(_way(project, manifests, texts) for texts in wanted)


def _way(project: Project, manifests: Mapping[str, Mapping[str, Any]], asked: Mapping[NormalizedName, str]) -> _Way:
    by_place: dict[_Place, list[str]] = {}
    limits = []
    for name, text in asked.items():
        places = [place for place, own in _stated(project, manifests) if own == name]
        if not places and project.tool == "uv":
            limits.append(text)
        for place in places or ([] if project.tool == "uv" else [_Place(project.manifest or "")]):
            by_place.setdefault(place, []).append(text)
    # of several places the first alone may have no solution: uv then locks when all are written
    later = project.tool == "uv" and len(by_place) > 1
    added = [
        (project.tool, "add", *(("--frozen",) if later else ()), *_member(manifests, place), *place.option, *texts)
        for place, texts in by_place.items()
    ]
    return _Way((*added, *(((project.tool, "lock"),) if later or not added else ())), tuple(limits))


def _member(manifests: Mapping[str, Mapping[str, Any]], place: _Place) -> tuple[str, ...]:
    """The option of uv that names a member of a workspace."""
    if "/" not in place.manifest:
        return ()
    name = table(manifests[place.manifest], "project").get("name")
    return ("--package", str(name))


def _stated(project: Project, manifests: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[_Place, str]]:
    """Each place where a manifest asks for a distribution, with its normalised name."""
    group = "-dG" if project.tool == "pdm" else "--group"
    for file, content in manifests.items():
        if file != project.manifest and project.tool != "uv":
            continue  # a path that the other tools install is no part of this manifest
        for name in _named(table(content, "project").get("dependencies")):
            yield _Place(file), name
        optional = ("-G",) if project.tool == "pdm" else ("--optional",)
        for path, option in (
            (("dependency-groups",), (group,)),
            (("project", "optional-dependencies"), optional),
            (("tool", "pdm", "dev-dependencies"), (group,)),
        ):
            for key, listed in table(content, *path).items():
                yield from ((_Place(file, (*option, key)), name) for name in _named(listed))
        for name in _named(table(content, "tool", "uv").get("dev-dependencies")):
            yield _Place(file, ("--dev",)), name
        yield from ((_Place(file), canonicalize_name(key)) for key in table(content, "tool", "poetry", "dependencies"))
        for key, listed in table(content, "tool", "poetry", "group").items():
            own = listed.get("dependencies") if isinstance(listed, dict) else None
            yield from ((_Place(file, (group, key)), canonicalize_name(name)) for name in own or ())


def _read(path: Path) -> str:
    """The text of a file that may be put in place again. Raises NoEditError."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise NoEditError(f"{path} is a link, which would be replaced")
        text = safe_io.read(path, LARGEST, follow=True).decode()
        toml.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise NoEditError(f"{path} cannot be read: {error}") from error
    if redact_text(text) != text:
        raise NoEditError(f"{path} holds a password or token, which a plan would repeat")
    return text


def _named(listed: object) -> Iterator[str]:
    for text in listed if isinstance(listed, list) else ():
        found = _REQUIREMENT.match(text) if isinstance(text, str) else None  # beside them, `{include-group = "…"}`
        if found is not None:
            yield canonicalize_name(found[0])


def _limit(path: Path, requirements: Sequence[str]) -> None:
    """Add to the constraints of the manifest, whose layout and comments stay; a limit on the same name goes."""
    try:
        import tomlkit
        from tomlkit.exceptions import TOMLKitError
    except ImportError as error:
        raise NoEditError(f"adding to {path.name} takes tomlkit: pip install 'envmedic[repair]'") from error
    try:
        document = tomlkit.parse(path.read_text(encoding="utf-8"))
        tool = document.setdefault("tool", tomlkit.table(is_super_table=True))
        own = tool.setdefault("uv", tomlkit.table())
        listed = own.get("constraint-dependencies")
        if listed is None:
            listed = tomlkit.array()
            own["constraint-dependencies"] = listed
        names = {canonicalize_name(Requirement(text).name) for text in requirements}
        for index in reversed(range(len(listed))):
            if set(_named([listed[index]])) & names:
                del listed[index]
        listed.extend(requirements)
        path.write_text(tomlkit.dumps(document), encoding="utf-8")
    except (TOMLKitError, TypeError, AttributeError) as error:
        raise NoEditError(f"`constraint-dependencies` cannot be added to {path.name}: {error}") from error


def _require_agreement(
    project: Project,
    environment: Environment,
    after: Mapping[str, str | None],
    old: Mapping[str, Any],
    new: Mapping[str, Any],
) -> None:
    """Refuse a lock by which the next sync would change what the repair leaves."""
    former, locked = _versions(old), _versions(new)
    for name, version in after.items():
        if version is None and name in locked:
            raise NoEditError(f"the lock needs {name} still, which the repair removes")
        if version is not None and not _has(locked.get(name, frozenset()), version):
            raise NoEditError(f"{project.tool} then locks {name} {_told(locked.get(name))}, not {version}")
    for item in environment.distributions:
        name = canonicalize_name(item.name)
        if name in after or not _has(former.get(name, frozenset()), item.version):
            continue
        if not _has(locked.get(name, frozenset()), item.version):
            raise NoEditError(
                f"{project.tool} then locks {name} {_told(locked.get(name))}, and {item.version} is installed"
            )


def _has(versions: frozenset[str], version: str) -> bool:
    """Whether a version is among the locked ones; a lock without a local label means every build."""
    try:
        wanted = Version(version)
        return any(
            wanted in (known, Version(known.public)) or Version(wanted.public) == known
            for known in map(Version, versions)
        )
    except InvalidVersion:
        return version in versions


def _told(versions: frozenset[str] | None) -> str:
    return " and ".join(sorted(versions)) if versions else "in no version"


def _versions(lock: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """The locked versions by normalised name; several where markers decide."""
    found: dict[str, frozenset[str]] = {}
    listed = lock.get("package")
    for item in listed if isinstance(listed, list) else ():
        name, version = item.get("name"), item.get("version")
        if isinstance(name, str) and isinstance(version, str):
            key = canonicalize_name(name)
            found[key] = found.get(key, frozenset()) | {version}
    return found


def _of_lock(before: str, after: str) -> str:
    """The releases that change: the lines of a lock are mostly URLs and hashes of files."""
    old, new = _versions(toml.loads(before)), _versions(toml.loads(after))
    moved = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    rows = [f"{name} {_told(old.get(name))} -> {_told(new.get(name))}\n" for name in moved[:_SHOWN]]
    return "".join(rows) + (f"and {len(moved) - _SHOWN} more\n" if len(moved) > _SHOWN else "")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
