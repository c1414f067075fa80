"""Limits on versions that the user states: constraints of pip and uv, requirements and lock of the project.

The project of a virtual environment is the directory that holds it. Files that cannot be read state nothing; the tools
that they are for refuse them too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from envmedic import limits, toml
from envmedic.model.pins import PinKind, UserPin
from envmedic.probe.packages import index_configuration
from envmedic.probe.readable import is_file, names, read_text
from envmedic.redact import redact_text

LOCKS = ("uv.lock", "poetry.lock", "pdm.lock")
"""Locks that list their packages in tables of TOML."""
_LARGEST = 16 << 20
"""Limit for a file, in bytes; locks of large projects have a few MB."""
_DEEPEST = 8
"""Limit on files of requirements that name each other."""
_OPTION = re.compile(r"(?:-([rc])|--(requirement|constraint))[\s=]*(.+)")
_HASHES = re.compile(r"\s--hash\b.*")


def observe(prefix: Path, variables: Mapping[str, str] = os.environ) -> tuple[UserPin, ...]:
    """Return what the user states about the environment at `prefix`, each statement once."""
    found = [*_constraints(prefix, variables), *_uv_settings(index_configuration.uv_files(variables))]
    if is_file(prefix / "pyvenv.cfg"):
        found += _of_project(prefix.parent)
    return tuple(dict.fromkeys(found))


def _constraints(prefix: Path, variables: Mapping[str, str]) -> Iterator[UserPin]:
    """Files of constraints that pip and uv use without being told."""
    own = prefix / "etc" / "envmedic" / "constraints.txt"  # a new repair may change what an earlier one wrote
    stated = [item.value for item in index_configuration.observe(prefix, variables) if item.key == "constraint"]
    # the last setting of pip wins only within pip; uv has its own
    for value in dict.fromkeys((*stated, *variables.get("UV_OVERRIDE", "").split())):
        path = _local(value)
        if path is not None and path != own:
            yield from _of_file(path, "constraint")


def _local(value: str) -> Path | None:
    """The file that a setting names; None for a remote one, which the installer reads itself."""
    parts = urlsplit(value)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if "://" in value else Path(value).expanduser().absolute()


def _of_project(folder: Path) -> Iterator[UserPin]:
    path = folder / "pyproject.toml"
    text = read_text(path, _LARGEST, follow=True)
    content = parsed_toml(text)
    uv = list(_uv_settings([folder / "uv.toml"])) if is_file(folder / "uv.toml") else list(_uv_table(path, text or ""))
    yield from uv
    # uv puts an override in the place of every other requirement of that name
    replaced = {_name(item.requirement) for item in uv if item.source.endswith("(override)")}
    for kind, listed in _dependencies(content):
        found = _statements(path, text or "", listed, kind)
        yield from (item for item in found if _name(item.requirement) not in replaced)
    for name in names(folder):
        if name.startswith("requirements") and name.endswith(".txt"):
            yield from _of_file(folder / name, "requirement" if name == "requirements.txt" else "variant")
    for name in LOCKS:
        yield from _of_lock(folder / name)


def _dependencies(content: Mapping[str, Any]) -> Iterator[tuple[PinKind, list[Any]]]:
    """The lists of requirements of a pyproject.toml: those of every installation, and those of some."""
    project, groups = _table(content, "project"), _table(content, "dependency-groups")
    yield "requirement", _list(project.get("dependencies"))
    for extra in _table(project, "optional-dependencies").values():
        yield "variant", _list(extra)
    for group in groups.values():
        yield "variant", _list(group)


def _uv_settings(paths: Iterable[Path]) -> Iterator[UserPin]:
    for path in paths:
        yield from _uv_table(path, read_text(path, _LARGEST, follow=True) or "")


def _uv_table(path: Path, text: str) -> Iterator[UserPin]:
    """Constraints and overrides of a uv.toml, or of ``[tool.uv]``."""
    content = parsed_toml(text)
    table = _table(_table(content, "tool"), "uv") if path.name == "pyproject.toml" else content
    yield from _statements(path, text, _list(table.get("constraint-dependencies")), "constraint")
    yield from _statements(path, text, _list(table.get("override-dependencies")), "constraint", " (override)")


def _statements(path: Path, text: str, listed: Iterable[Any], kind: PinKind, note: str = "") -> Iterator[UserPin]:
    lines = text.splitlines()
    for item in listed:
        if isinstance(item, str):  # a group may include another one, which is listed itself
            number = next((n for n, line in enumerate(lines, 1) if f'"{item}"' in line or f"'{item}'" in line), 0)
            yield from _pin(item, f"{path}:{number}{note}" if number else f"{path}{note}", kind)


def _of_file(path: Path, kind: PinKind, depth: int = 0) -> Iterator[UserPin]:
    """Statements of a file of requirements or constraints, and of those that it names."""
    text = read_text(path, _LARGEST, follow=True) if depth < _DEEPEST else None
    for number, line in _logical(text or ""):
        option = _OPTION.fullmatch(line)
        if option is None:
            yield from _pin(_HASHES.sub("", line), f"{path}:{number}", kind)
            continue
        other = _local(option[3].strip())
        within: PinKind = "constraint" if "c" in (option[1] or option[2])[0] and kind != "variant" else kind
        if other is not None:
            named = Path(option[3].strip())
            yield from _of_file(other if named.is_absolute() else path.parent / named, within, depth + 1)


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without comments; continued ones joined, as pip reads them."""
    begun, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        begun = begun if parts else number
        plain = re.sub(r"(^|\s)#.*$", "", line).strip()
        parts.append(plain.removesuffix("\\").strip())
        if not plain.endswith("\\"):
            whole, parts = " ".join(parts).strip(), []
            if whole:
                yield begun, whole


def _of_lock(path: Path) -> Iterator[UserPin]:
    """The versions of a lock that come from an index; a package with several has a marker for each."""
    text = read_text(path, _LARGEST, follow=True) or ""
    begins = [number for number, line in enumerate(text.splitlines(), 1) if line.strip() == "[[package]]"]
    for number, package in zip(begins, _list(parsed_toml(text).get("package")), strict=False):
        if not isinstance(package, dict) or not _from_index(package, of_uv=path.name == "uv.lock"):
            continue
        # uv states a list, pdm and poetry one marker; poetry a table where its groups have several
        stated = package.get("resolution-markers") or package.get("marker") or package.get("markers")
        markers = [f"({item})" for item in (stated if isinstance(stated, list) else [stated]) if isinstance(item, str)]
        suffix = f" ; {' or '.join(markers)}" if markers else ""
        yield from _pin(f"{package.get('name')}=={package.get('version')}{suffix}", f"{path}:{number + 1}", "lock")


def _from_index(package: Mapping[str, Any], *, of_uv: bool) -> bool:
    source = _table(package, "source")
    if of_uv:
        return "registry" in source
    # poetry calls a simple index "legacy"; pdm puts the place of another source into the package itself
    return source.get("type") in {None, "legacy"} and not {"git", "url", "path"} & package.keys()


def _pin(text: str, source: str, kind: PinKind) -> Iterator[UserPin]:
    try:
        requirement = limits.parsed(text)
    except (InvalidRequirement, ValueError):  # an option, a path, an editable
        return
    if requirement.specifier or kind == "requirement":
        yield UserPin(requirement=redact_text(str(requirement)), source=source, kind=kind)


def _name(requirement: str) -> str:
    return canonicalize_name(limits.parsed(requirement).name)


def parsed_toml(text: str | None) -> Mapping[str, Any]:
    """Return the tables of a file of TOML; none of a damaged one."""
    try:
        return toml.loads(text or "")
    except (ValueError, RecursionError):  # a number of thousands of digits is no TOMLDecodeError
        return {}


def _table(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = content.get(key)
    return found if isinstance(found, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
