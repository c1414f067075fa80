"""Debris of interrupted and partial uninstalls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from envmedic.compat.import_names import IMPORTED_AS
from envmedic.model.facts import Leftover
from envmedic.probe import layout
from envmedic.probe.metadata import name_and_version, normalise, parse_core, parse_record
from envmedic.probe.packages.distributions import Scan
from envmedic.probe.readable import is_directory, is_file, names, read_bytes, read_text

FAMILY_PACKAGES = {
    "torch": "torch",
    "torchgen": "torch",
    "functorch": "torch",
    "torchvision": "torchvision",
    "torchaudio": "torchaudio",
    "torio": "torchaudio",
    "triton": "triton",
}
"""Import package of the torch family → distribution that installs it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VERSION = re.compile(
    r"^\s*(?:__version__|version|short_version)\s*(?::\s*str\s*)?=\s*['\"](?P<version>\d[^'\"]*)['\"]", re.MULTILINE
)
_PROVIDERS = {"triton": ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-windows", "torchtriton")}


def find(scans: Iterable[Scan], prefix: Path) -> tuple[Leftover, ...]:
    """What is left over in the site-packages directories that were scanned, sorted by path."""
    results = list(scans)
    claimed = _claimed(results, prefix)
    wanted = _wanted(results) - claimed
    found = [item for result in results for item in _in_site(result, prefix, claimed, wanted)]
    return tuple(sorted(found, key=lambda item: item.path))


def _wanted(scans: list[Scan]) -> frozenset[str]:
    """Normalised names of what installed distributions require, extras apart."""
    texts = {text for result in scans for item in result.installed for text in item.distribution.requires}
    # both spellings occur; a parse of every marker would cost more than this estimate is worth
    plain = (text for text in texts if "extra ==" not in text and "extra==" not in text)
    return frozenset(normalise(match[0]) for text in plain if (match := _NAME.match(text)))


def _claimed(scans: list[Scan], prefix: Path) -> frozenset[str]:
    """Normalised names of installed distributions, also of those that only a conda record knows."""
    installed = {item.distribution.name for result in scans for item in result.installed}
    return frozenset(installed | {_CONDA_NAMES.get(name, name) for name in conda_records(prefix)})


_CONDA_NAMES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch", "torchtriton": "triton"}


def conda_records(prefix: Path) -> frozenset[str]:
    """Names of conda packages, from ``conda-meta/NAME-VERSION-BUILD.json``."""
    records = (item.removesuffix(".json").rsplit("-", 2)[0] for item in names(prefix / "conda-meta"))
    return frozenset(normalise(name) for name in records)


def _in_site(result: Scan, prefix: Path, claimed: frozenset[str], wanted: frozenset[str]) -> Iterator[Leftover]:
    entries = names(result.site)
    known = claimed | wanted | _named_by_metadata(result.site, entries)
    for entry in entries:
        path = layout.relative(result.site / entry, prefix)
        if entry.startswith("~"):
            yield _tilde(result.site / entry, path, known)
        elif entry in FAMILY_PACKAGES and is_directory(result.site / entry):
            yield from _orphan_package(result.site / entry, path, claimed)
        # elsewhere an unowned package may be the user's own code; one that a requirement names blocks the installer
        elif _distribution_of(entry) in wanted and _unowned(result, entry):
            yield _orphan(result.site / entry, path, _distribution_of(entry))
        elif entry.endswith(".libs"):
            yield from _orphan_libraries(result, entry, prefix, claimed)
    for entry, why in result.broken:
        stated = name_and_version(entry)
        path = layout.relative(result.site / entry, prefix)
        name, version = (normalise(stated[0]), stated[1]) if stated else (None, None)
        code = name is not None and _has_code(result.site, entry, name)
        yield Leftover(kind="empty-dist-info", path=path, name=name, detail=why, version=version, code=code)


def _named_by_metadata(site: Path, entries: Iterable[str]) -> frozenset[str]:
    """Names of the distributions whose metadata directories pip renamed."""
    # the renamed directory lost its first letter, but METADATA inside still has the full name
    folders = (site / entry for entry in entries if entry.startswith("~"))
    names_ = (parse_core(read_bytes(folder / "METADATA") or b"").name for folder in folders)
    return frozenset(normalise(name) for name in names_ if name)


def _tilde(entry: Path, path: str, known: frozenset[str]) -> Leftover:
    """A file or directory that pip renamed; a metadata directory still tells its name and version.

    Code that was renamed with its distribution was in use: an upgrade was interrupted.
    """
    core = parse_core(read_bytes(entry / "METADATA") or b"")
    stated = name_and_version(entry.name)
    name = normalise(core.name) if core.name else _renamed(entry.name, known)
    version = core.version or (stated[1] if stated else None)
    code = any(item.endswith((".py", ".so")) for item in names(entry))
    return Leftover(kind="tilde", path=path, name=name, detail="renamed by an uninstall", version=version, code=code)


def _unowned(result: Scan, entry: str) -> bool:
    """Whether it is a package of which no distribution says that it is its own."""
    if not is_file(result.site / entry / "__init__.py"):
        return False
    named = any(entry in item.distribution.import_names for item in result.installed)
    return not named and not any(path.startswith(f"{entry}/") for item in result.installed for path in item.paths)


def _has_code(site: Path, entry: str, name: str) -> bool:
    """Whether modules of a distribution whose metadata is damaged still lie there."""
    listed = parse_record(read_bytes(site / entry / "RECORD") or b"").paths
    modules = [path for path in listed if path.endswith((".py", ".so")) and path[0] not in "./"]
    packages = [name.replace("-", "_"), *(package for package, owner in IMPORTED_AS.items() if owner == name)]
    return any(is_file(site / path) for path in modules) or any(is_directory(site / item) for item in packages)


def _distribution_of(entry: str) -> str:
    """The distribution that an import package most likely belongs to."""
    return IMPORTED_AS.get(entry, normalise(entry))


def _renamed(entry: str, claimed: frozenset[str]) -> str | None:
    """The distribution whose file or directory pip renamed: its first characters became ``~`` and fillers."""
    stated = name_and_version(entry.lstrip("~"))
    stem = stated[0] if stated else re.sub(r"(\.(dist-info|egg-info|libs|py))$", "", entry)
    # pip's AdjacentTempDirectory replaces leading characters by ~ and fillers out of -~.=%0123456789
    tail = normalise(re.sub(r"^[-~.=%0-9]+", "", stem))
    # the shortest name that ends alike: pip replaces as few characters as it can
    known = sorted(claimed | set(FAMILY_PACKAGES), key=len)
    name = next((item for item in known if tail and item.endswith(tail) and len(item) > len(tail)), None)
    return FAMILY_PACKAGES.get(name, name) if name else None


def _orphan_package(folder: Path, path: str, claimed: frozenset[str]) -> Iterator[Leftover]:
    """A package of the torch family that no installed distribution brings."""
    owner = FAMILY_PACKAGES[folder.name]
    if claimed & {owner, *_PROVIDERS.get(owner, ())}:
        return
    yield _orphan(folder, path, owner)


def _orphan(folder: Path, path: str, owner: str) -> Leftover:
    modules = [item for item in names(folder) if item != "__pycache__"]
    detail = "no installed distribution brings it" if modules else "holds byte code only"
    return Leftover(
        kind="orphan-package", path=path, name=owner, detail=detail, version=_version(folder), code=bool(modules)
    )


def _version(folder: Path) -> str | None:
    """The version that a package's own source states."""
    texts = (read_text(folder / name) or "" for name in ("version.py", "_version.py", "__init__.py"))
    return next((match["version"] for text in texts if (match := _VERSION.search(text))), None)


def _orphan_libraries(result: Scan, entry: str, prefix: Path, claimed: frozenset[str]) -> Iterator[Leftover]:
    """Bundled libraries (``NAME.libs``) of a family member that is gone, or that its RECORD does not list."""
    owner = FAMILY_PACKAGES.get(entry.removesuffix(".libs"))
    if owner is None:
        return
    folder = result.site / entry
    if owner not in claimed:
        detail = "no installed distribution brings it"
        yield Leftover(kind="orphan-library", path=layout.relative(folder, prefix), name=owner, detail=detail)
        return
    records = [item for item in result.installed if item.distribution.name == owner]
    # without a RECORD, the owner of a bundled library cannot be told
    if not all(item.distribution.has_record for item in records) or not records:
        return
    listed = {path for item in records for path in item.paths}
    for name in names(folder):
        if f"{entry}/{name}" not in listed and ".so" in name:
            path = layout.relative(folder / name, prefix)
            yield Leftover(kind="orphan-library", path=path, name=owner, detail="not in the distribution's RECORD")
