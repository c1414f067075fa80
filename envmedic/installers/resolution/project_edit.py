"""Manifest and lock of a project of uv that agree with a repair, made by uv itself in a copy of both files.

What the manifest asks for itself is asked for anew (``uv add``); what comes with it is limited by
``constraint-dependencies``, and locked again. https://docs.astral.sh/uv/concepts/projects/dependencies/,
https://docs.astral.sh/uv/reference/settings/#constraint-dependencies.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from tomlkit.exceptions import TOMLKitError

from envmedic import proc, safe_io, toml
from envmedic.installers.uv import find_uv
from envmedic.model.facts import Environment
from envmedic.model.pins import EditedFile, ProjectEdit
from envmedic.redact import redact_text
from envmedic.text_diff import unified

_LARGEST = 1 << 25
_TIMEOUT_S = 600.0
_BESIDE = ("uv.toml", ".python-version")
"""What uv reads besides manifest and lock."""
_UNSET = (
    "VIRTUAL_ENV",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "UV_WORKING_DIR",
    "UV_PYTHON",
    "UV_FROZEN",
    "UV_LOCKED",
)
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHOWN = 40
"""Releases of a lock that are told by name."""


class NoEditError(Exception):
    """There is a reason why manifest and lock are not edited; the text says it."""


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
    if project.tool != "uv":
        raise NoEditError(f"envmedic edits projects of uv alone, and this is one of {project.tool}")
    folder, names = Path(project.folder), (project.manifest, project.lock)
    before = {name: _read(folder / name) for name in names}
    manifest = toml.loads(before[project.manifest])
    _require_simple(manifest, folder)
    asked = {canonicalize_name(Requirement(text).name): text for text in requirements}
    own = frozenset(_direct(manifest))
    _require_no_group(manifest, asked.keys() - own)
    with tempfile.TemporaryDirectory(prefix="envmedic-project-") as name:
        copy = Path(name)
        for file in (*names, *_BESIDE):
            if (folder / file).is_file():
                shutil.copyfile(folder / file, copy / file)
        limits = [text for key, text in asked.items() if key not in own]
        if limits:
            _limit(copy / project.manifest, limits)
        added = [text for key, text in asked.items() if key in own]
        command = ("add", "--no-sync", *added) if added else ("lock",)
        _run(copy, command, environment, offline=offline)
        new = {file: _read(copy / file) for file in names}
    _require_agreement(environment, after, toml.loads(before[project.lock]), toml.loads(new[project.lock]))
    files = tuple(
        EditedFile(
            name=file,
            before_sha256=_sha256(before[file]),
            after_sha256=_sha256(new[file]),
            after=new[file],
            diff=_of_lock(before[file], new[file]) if file == project.lock else unified(file, before[file], new[file]),
        )
        for file in names
        if new[file] != before[file]
    )
    if not files:
        raise NoEditError("uv finds nothing to change in them")
    return ProjectEdit(folder=project.folder, command=("uv", *command), files=files)


def _read(path: Path) -> str:
    """The text of a file that may be put in place again. Raises NoEditError."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise NoEditError(f"{path} is a link, which would be replaced")
        text = safe_io.read(path, _LARGEST, follow=True).decode()
        toml.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise NoEditError(f"{path} cannot be read: {error}") from error
    if redact_text(text) != text:
        raise NoEditError(f"{path} holds a password or token, which a plan would repeat")
    return text


def _require_simple(manifest: Mapping[str, Any], folder: Path) -> None:
    """Refuse what a copy of two files is not enough for."""
    own = _table(manifest, "tool", "uv")
    if "workspace" in own:
        raise NoEditError("it is a workspace, and only you know which member is to state it")
    listed = _table(own, "sources").values()
    sources = [item for value in listed for item in (value if isinstance(value, list) else [value])]
    if any(isinstance(item, dict) and ("path" in item or "workspace" in item) for item in sources):
        raise NoEditError("it has sources in directories beside it, which a copy would not find")
    indexes = own.get("index")
    places = [item.get("url") for item in indexes if isinstance(item, dict)] if isinstance(indexes, list) else []
    links = own.get("find-links")
    places += links if isinstance(links, list) else []
    if any(isinstance(place, str) and "://" not in place and not place.startswith("/") for place in places):
        raise NoEditError(f"it has an index in a directory relative to {folder}, which a copy would not find")


def _require_no_group(manifest: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse to limit for everybody what a group or an extra asks for."""
    grouped = dict(_grouped(manifest))
    for name in sorted(names):
        if name in grouped:
            raise NoEditError(f"{name} is of the group {grouped[name]}: add `{_option(manifest, grouped[name])}`")


def _option(manifest: Mapping[str, Any], group: str) -> str:
    kind = "optional" if group in _table(manifest, "project", "optional-dependencies") else "group"
    return f"--{kind} {group}"


def _direct(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield from _named(_table(manifest, "project").get("dependencies"))


def _grouped(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for path in (("dependency-groups",), ("project", "optional-dependencies")):
        for group, listed in _table(manifest, *path).items():
            yield from ((name, group) for name in _named(listed))
    yield from ((name, "dev") for name in _named(_table(manifest, "tool", "uv").get("dev-dependencies")))


def _named(listed: object) -> Iterator[str]:
    for text in listed if isinstance(listed, list) else ():
        found = _REQUIREMENT.match(text) if isinstance(text, str) else None  # beside them, `{include-group = "…"}`
        if found is not None:
            yield canonicalize_name(found[0])


def _limit(path: Path, requirements: Sequence[str]) -> None:
    """Add to the constraints of the manifest, whose layout and comments stay; a limit on the same name goes."""
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


def _run(copy: Path, command: Sequence[str], environment: Environment, *, offline: bool) -> None:
    # the user's own uv where there is one: it must read the lock afterwards. A plan runs no code of a distribution.
    argv = [shutil.which("uv") or find_uv(), *command, "--no-build", "--no-python-downloads"]
    argv += [f"--python={environment.prefix}/bin/python", f"--project={copy}", "--color=never", "--no-progress"]
    argv += ["--offline"] if offline else []
    try:
        done = proc.run(argv, env=dict.fromkeys(_UNSET), cwd=str(copy), timeout_s=_TIMEOUT_S)
    except OSError as error:
        raise NoEditError(f"uv cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        said = [text.strip(" \u00d7\u2570\u2500\u25b6\u2502") for text in done.stderr.strip().splitlines()]
        raise NoEditError(f"`uv {' '.join(command)}` fails: {redact_text(' '.join(filter(None, said))[-600:])}")


def _require_agreement(
    environment: Environment, after: Mapping[str, str | None], old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    """Refuse a lock by which the next sync would change what the repair leaves."""
    former, locked = _versions(old), _versions(new)
    for name, version in after.items():
        if version is None and name in locked:
            raise NoEditError(f"the lock needs {name} still, which the repair removes")
        if version is not None and not _has(locked.get(name, frozenset()), version):
            raise NoEditError(f"uv then locks {name} {_told(locked.get(name))}, not {version}")
    for item in environment.distributions:
        name = canonicalize_name(item.name)
        if name in after or not _has(former.get(name, frozenset()), item.version):
            continue
        if not _has(locked.get(name, frozenset()), item.version):
            raise NoEditError(f"uv then locks {name} {_told(locked.get(name))}, and {item.version} is installed")


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


def _table(content: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    found: object = content
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
