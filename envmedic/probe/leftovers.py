"""Debris of interrupted and partial uninstalls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from envmedic.model.facts import Leftover
from envmedic.probe import layout
from envmedic.probe.distributions import Scan
from envmedic.probe.files import is_directory, names
from envmedic.probe.metadata import name_and_version, normalise

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
_PROVIDERS = {"triton": ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-windows", "torchtriton")}


def find(scans: Iterable[Scan], prefix: Path) -> tuple[Leftover, ...]:
    """What is left over in the site-packages directories that were scanned, sorted by path."""
    results = list(scans)
    claimed = _claimed(results, prefix)
    found = [item for result in results for item in _in_site(result, prefix, claimed)]
    return tuple(sorted(found, key=lambda item: item.path))


def _claimed(scans: list[Scan], prefix: Path) -> frozenset[str]:
    """Normalised names of installed distributions, also of those that only a conda record knows."""
    installed = {item.distribution.name for result in scans for item in result.installed}
    return frozenset(installed | {_CONDA_NAMES.get(name, name) for name in conda_records(prefix)})


_CONDA_NAMES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch", "torchtriton": "triton"}


def conda_records(prefix: Path) -> frozenset[str]:
    """Names of conda packages, from ``conda-meta/NAME-VERSION-BUILD.json``."""
    records = (item.removesuffix(".json").rsplit("-", 2)[0] for item in names(prefix / "conda-meta"))
    return frozenset(normalise(name) for name in records)


def _in_site(result: Scan, prefix: Path, claimed: frozenset[str]) -> Iterator[Leftover]:
    entries = names(result.site)
    for entry in entries:
        path = layout.relative(result.site / entry, prefix)
        if entry.startswith("~"):
            yield Leftover(kind="tilde", path=path, name=_renamed(entry, claimed), detail="renamed by an uninstall")
        elif entry in FAMILY_PACKAGES and is_directory(result.site / entry):
            yield from _orphan_package(result.site / entry, path, claimed)
        elif entry.endswith(".libs"):
            yield from _orphan_libraries(result, entry, prefix, claimed)
    for entry, why in result.broken:
        stated = name_and_version(entry)
        name = normalise(stated[0]) if stated else None
        yield Leftover(kind="empty-dist-info", path=layout.relative(result.site / entry, prefix), name=name, detail=why)


def _renamed(entry: str, claimed: frozenset[str]) -> str | None:
    """The distribution whose file or directory pip renamed: its first characters became ``~`` and fillers."""
    stated = name_and_version(entry.lstrip("~"))
    stem = stated[0] if stated else re.sub(r"(\.(dist-info|egg-info|libs|py))$", "", entry)
    tail = normalise(re.sub(r"^[-~.=%0-9]+", "", stem))
    known = sorted(claimed | set(FAMILY_PACKAGES), key=len)
    name = next((item for item in known if tail and item.endswith(tail) and len(item) > len(tail)), None)
    return FAMILY_PACKAGES.get(name, name) if name else None


def _orphan_package(folder: Path, path: str, claimed: frozenset[str]) -> Iterator[Leftover]:
    """A package of the torch family that no installed distribution brings."""
    owner = FAMILY_PACKAGES[folder.name]
    if claimed & {owner, *_PROVIDERS.get(owner, ())}:
        return
    modules = [item for item in names(folder) if item != "__pycache__"]
    detail = "no installed distribution brings it" if modules else "holds byte code only"
    yield Leftover(kind="orphan-package", path=path, name=owner, detail=detail)


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
    if not all(item.distribution.has_record for item in records) or not records:
        return
    listed = {path for item in records for path in item.paths}
    for name in names(folder):
        if f"{entry}/{name}" not in listed and ".so" in name:
            path = layout.relative(folder / name, prefix)
            yield Leftover(kind="orphan-library", path=path, name=owner, detail="not in the distribution's RECORD")
