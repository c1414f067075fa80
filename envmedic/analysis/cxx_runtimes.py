"""Copies of the C++ run-time library: their symbol versions, and the entries of LD_LIBRARY_PATH that load old ones."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envmedic.model.facts import CxxRuntime, Environment, UnmetVersion

LIBRARY_PATH = "LD_LIBRARY_PATH"
_CXX = ("GLIBCXX_", "CXXABI_")


def unmet_versions(environment: Environment) -> list[UnmetVersion]:
    """Return the versions of symbols that compiled modules need and do not find, of every library."""
    return [item for library in (*environment.libraries, *environment.extensions) for item in library.unmet_versions]


def unmet_cxx(environment: Environment) -> list[UnmetVersion]:
    """Return those of the C++ library."""
    return [item for item in unmet_versions(environment) if item.version.startswith(_CXX)]


def sufficient(runtime: CxxRuntime, versions: Iterable[str]) -> bool:
    """Whether a copy has all these versions."""
    # libstdc++ keeps every older version node, so comparing with the newest one of each family is enough
    newest = {item.partition("_")[0]: item for item in (runtime.newest, runtime.newest_abi) if item is not None}
    families = ((item.partition("_")[0], item) for item in versions)
    return all(family in newest and key(item) <= key(newest[family]) for family, item in families)


def key(version: str) -> tuple[str, list[int]]:
    """Return the key by which versions of symbols ascend."""
    family, _, number = version.partition("_")
    return family, [int(part) for part in re.findall(r"\d+", number)]


def old_entries(environment: Environment, value: str) -> tuple[str, ...]:
    """Return the entries of LD_LIBRARY_PATH (`value`) with too old a copy, if the next copy in line is good."""
    unmet = unmet_cxx(environment)
    versions = {item.version for item in unmet}
    found = {item.found for item in unmet}
    # `process` is the copy that modules get. Old entries matter only where it came from LD_LIBRARY_PATH itself
    process = next((item for item in environment.cxx_runtimes if item.path in found), None)
    if process is None or process.entry is None or not value:
        return ()
    bad = {item.entry: None for item in environment.cxx_runtimes if item.entry and not sufficient(item, versions)}
    rest = [item for item in environment.cxx_runtimes if item is not process and item.entry not in bad]
    following = [item for item in rest if item.found_by in {LIBRARY_PATH, "system"}]
    # without a good copy further on, removing entries would only change the error
    if not following or not sufficient(following[0], versions):
        return ()
    return tuple(bad)
