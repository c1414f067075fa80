"""Installed distributions, read from their metadata directories."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from envmedic import limits
from envmedic.model.facts import Distribution, Origin
from envmedic.model.record import DistributionState
from envmedic.probe import layout
from envmedic.probe.metadata import (
    CoreMetadata,
    RecordFile,
    name_and_version,
    normalise,
    parse_core,
    parse_direct_url,
    parse_record,
    parse_wheel_tags,
)
from envmedic.probe.packages import import_names
from envmedic.probe.packages.import_names import Modules
from envmedic.probe.readable import is_directory, is_file, names, read_bytes, read_text
from envmedic.probe.text import encodable

Owner = Literal["pip", "uv", "conda", "other"]
UNKNOWN_VERSION = "0+unknown"
"""Version of a distribution whose metadata cannot be found (a develop install whose source is gone)."""
_OWNERS: dict[str, Owner] = {"pip": "pip", "uv": "uv", "conda": "conda"}


class Installed(msgspec.Struct, frozen=True):
    """A distribution with the paths that its RECORD lists, relative to its site-packages."""

    distribution: Distribution
    paths: tuple[str, ...] = ()
    hashes: tuple[str, ...] = ()
    """Of each path, where a RECORD lists them, as it writes them."""
    sizes: tuple[str, ...] = ()
    """The same of the sizes, in bytes."""


class Scan(msgspec.Struct):
    """The distributions of one site-packages directory."""

    site: Path
    modules: Modules = msgspec.field(default_factory=Modules)
    installed: list[Installed] = msgspec.field(default_factory=list)
    broken: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """Names of metadata directories that no distribution can be read from, and why."""


def scan(site: Path, prefix: Path, *, outside: bool = False, soabi: str | None = None) -> Scan:
    """Read every metadata entry of `site`. Damaged entries are collected, never raised.

    `soabi` is the interpreter's tag for extension modules; None accepts those of any interpreter.
    """
    result = Scan(site, Modules(soabi))
    entries = names(site)
    editable = _editable_names(site, entries)
    for entry in entries:
        # pip renames a distribution to ~NAME while it uninstalls; `leftovers` reports those
        if entry.startswith("~"):
            continue
        if entry.endswith((".dist-info", ".egg-info")):
            core = _core(site / entry)
            if isinstance(core, str):
                result.broken.append((entry, core))
            else:
                distribution = _installed(site / entry, core, prefix, editable, result.modules, outside=outside)
                result.installed.append(distribution)
        elif entry.endswith(".egg-link"):
            result.installed.append(_develop(site, entry, prefix, outside=outside))
    return result


def _core(folder: Path) -> CoreMetadata | str:
    """The metadata of a distribution, with name and version; or why there is none."""
    file = _metadata_file(folder)
    data = read_bytes(file)
    if data is None:
        return f"{file.name} is absent or unreadable"
    # an emptied METADATA still leaves name and version in the name of its directory
    core = _completed(parse_core(data), folder.name)
    return core if core.name and core.version else f"{file.name} says no name or no version"


def _metadata_file(folder: Path) -> Path:
    """METADATA or PKG-INFO; an ``.egg-info`` may also be a single file (distutils)."""
    if folder.name.endswith(".dist-info"):
        return folder / "METADATA"
    return folder / "PKG-INFO" if is_directory(folder) else folder


def _completed(core: CoreMetadata, entry: str) -> CoreMetadata:
    """`core` with a missing name or version taken from the directory's name."""
    stated = name_and_version(entry)
    if stated is None or (core.name and core.version):
        return core
    return CoreMetadata(core.name or stated[0], core.version or stated[1], core.requires, core.requires_python)


def _installed(
    folder: Path, core: CoreMetadata, prefix: Path, editable: frozenset[str], modules: Modules, *, outside: bool
) -> Installed:
    is_wheel = folder.name.endswith(".dist-info")
    record = _record(folder)
    name = normalise(core.name or "")
    origin = _origin(folder, editable=name in editable)
    distribution = Distribution(
        name=name,
        version=core.version or UNKNOWN_VERSION,
        metadata_path=layout.relative(folder, prefix),
        site=layout.relative(folder.parent, prefix),
        owner=_owner(folder),
        origin=origin,
        requested=is_file(folder / "REQUESTED"),
        requires=core.requires or _egg_requires(folder),
        requires_python=core.requires_python,
        tags=parse_wheel_tags(read_bytes(folder / "WHEEL") or b"") if is_wheel else (),
        import_names=_import_names(folder, record, modules, editable=origin.kind == "editable"),
        has_record=record is not None,
        record_error=record.error if record else None,
        size_bytes=record.size_bytes if record else 0,
        outside_prefix=outside,
    )
    if record is None:
        return Installed(distribution)
    return Installed(distribution, record.paths, record.hashes, record.sizes)


def _import_names(folder: Path, record: RecordFile | None, modules: Modules, *, editable: bool) -> tuple[str, ...]:
    stated = read_bytes(folder / "top_level.txt")
    if record is not None and not editable:
        return import_names.from_metadata(stated, record.paths, modules)
    names = import_names.read_top_level(stated)
    return names if editable else import_names.on_disk(names, folder.parent, modules)


def _record(folder: Path) -> RecordFile | None:
    """RECORD, or setuptools' installed-files.txt (paths relative to the egg-info)."""
    data = read_bytes(folder / "RECORD")
    if data is not None:
        return parse_record(data)
    listed = read_text(folder / "installed-files.txt")
    if listed is None:
        return None
    paths = (os.path.normpath(f"{folder.name}/{line}") for line in listed.splitlines() if line)
    return RecordFile(tuple(paths), 0)


def _egg_requires(folder: Path) -> tuple[str, ...]:
    """The unconditional part of requires.txt, which egg-infos have in place of Requires-Dist."""
    text = read_text(folder / "requires.txt") or ""
    plain = text.split("[", 1)[0]
    return tuple(limits.requirement(line.strip()) for line in plain.splitlines() if line.strip())


def _owner(folder: Path) -> Owner:
    word = (read_text(folder / "INSTALLER") or "").strip().lower()
    return _OWNERS.get(word, "other")


def _origin(folder: Path, *, editable: bool) -> Origin:
    """Where it came from. Installers write direct_url.json for all that is not from an index (PEP 610)."""
    data = read_bytes(folder / "direct_url.json")
    if data is not None:
        return parse_direct_url(data)
    if editable:
        return Origin(kind="editable")
    owner = _owner(folder)
    if owner == "conda":
        return Origin(kind="conda")
    return Origin(kind="index" if owner in ("pip", "uv") else "unknown")


def _editable_names(site: Path, entries: Iterable[str]) -> frozenset[str]:
    """Distributions with an editable hook of setuptools: ``__editable__.NAME-VERSION.pth``."""
    hooks = [item for item in entries if item.startswith("__editable__") and item.endswith(".pth")]
    found = set()
    for hook in hooks:
        stem = hook.removeprefix("__editable__").lstrip("._").removesuffix(".pth")
        found.add(normalise(stem.partition("-")[0]))
    return frozenset(found) if is_directory(site) else frozenset()


def _develop(site: Path, entry: str, prefix: Path, *, outside: bool) -> Installed:
    """A legacy develop install: the link's first line names the source, whose egg-info has the metadata."""
    link = site / entry
    stem = entry.removesuffix(".egg-link")
    source = site / next(iter((read_text(link) or "").splitlines()), "").strip().replace("\0", "")
    folder = _source_metadata(source, stem)
    core = parse_core(read_bytes(folder / "PKG-INFO") or b"") if folder else CoreMetadata(None, None, (), None)
    distribution = Distribution(
        name=normalise(core.name or stem),
        version=core.version or UNKNOWN_VERSION,
        metadata_path=layout.relative(link, prefix),
        site=layout.relative(site, prefix),
        origin=Origin(kind="editable", url="file://" + quote(str(source))),
        requires=core.requires,
        requires_python=core.requires_python,
        import_names=import_names.read_top_level(read_bytes(folder / "top_level.txt")) if folder else (),
        has_record=False,
        outside_prefix=outside,
    )
    return Installed(distribution)


def _source_metadata(source: Path, stem: str) -> Path | None:
    """The egg-info in a source directory that belongs to the distribution `stem`."""
    for entry in names(source):
        if entry.endswith(".egg-info") and normalise(entry.removesuffix(".egg-info")) == normalise(stem):
            return source / entry
    return None


def duplicates(installed: Iterable[Distribution]) -> tuple[str, ...]:
    """Names that more than one metadata entry inside the prefix claims.

    A develop install leaves a link beside nothing else, so two entries are always a fault.
    """
    counts = Counter(item.name for item in installed if not item.outside_prefix)
    return tuple(sorted(name for name, count in counts.items() if count > 1))


def states(tree: Path) -> tuple[DistributionState, ...]:
    """Name, version and owner of every distribution inside `tree`, sorted. Raises `NotAnEnvironment`."""
    found = layout.read_layout(tree)
    sites = layout.site_packages(found, found.version)
    found_states = (state for site in sites for state in _states(site, tree))
    return encodable(tuple(sorted(found_states, key=lambda item: (item.name, item.version, item.owner))))


def _states(site: Path, prefix: Path) -> Iterator[DistributionState]:
    """Names, versions and owners as `scan` finds them, without RECORD, which takes nine tenths of its time."""
    for entry in names(site):
        if entry.startswith("~"):
            continue
        if entry.endswith((".dist-info", ".egg-info")):
            core = _core(site / entry)
            if not isinstance(core, str):
                yield DistributionState(
                    name=normalise(core.name or ""),
                    version=core.version or UNKNOWN_VERSION,
                    owner=_owner(site / entry),
                )
        elif entry.endswith(".egg-link"):
            develop = _develop(site, entry, prefix, outside=False).distribution
            yield DistributionState(name=develop.name, version=develop.version, owner=develop.owner)
