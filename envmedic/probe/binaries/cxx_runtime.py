"""Copies of the C++ run-time library (libstdc++.so.6): the loaded one and the alternatives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

from envmedic.model.facts import CxxRuntime
from envmedic.probe.binaries.extensions import CXX_RUNTIME
from envmedic.probe.elf import symbol_versions
from envmedic.probe.elf.dynamic import Elf, ElfError
from envmedic.probe.elf.loader import Search

Place = Literal["process", "LD_LIBRARY_PATH", "prefix", "system"]


def observe(prefix: Path, loaded: Path | None, search: Search, *, others: bool) -> tuple[CxxRuntime, ...]:
    """The copy that is loaded, if any, and with `others` those in every place where it may be looked for."""
    found = [_runtime(loaded, "process", search)] if loaded is not None else []
    known = {loaded}
    for path, place in _places(prefix, search) if others else ():
        if path not in known and path.exists():
            known.add(path)
            found.append(_runtime(path, place, search))
    return tuple(found)


def _places(prefix: Path, search: Search) -> Iterator[tuple[Path, Place]]:
    yield from ((Path(folder, CXX_RUNTIME), "LD_LIBRARY_PATH") for folder in search.library_path)
    yield prefix / "lib" / CXX_RUNTIME, "prefix"
    yield from ((Path(path), "system") for path in search.cache.get(CXX_RUNTIME, ()))
    yield from ((Path(folder, CXX_RUNTIME), "system") for folder in search.defaults)


def _runtime(path: Path, place: Place, search: Search) -> CxxRuntime:
    try:
        with closing(Elf(path)) as elf:
            versions = symbol_versions.definitions(elf)
    except (OSError, ElfError):
        versions = ()
    entry = next((folder for folder in search.library_path if Path(folder) == path.parent), None)
    return CxxRuntime(
        path=str(path),
        newest=newest(versions, "GLIBCXX_"),
        newest_abi=newest(versions, "CXXABI_"),
        found_by=place,
        entry=entry,
    )


def newest(versions: Iterable[str], family: str) -> str | None:
    """The highest of the versions that begin with `family` and go on with numbers."""
    numbered = [item for item in versions if re.fullmatch(re.escape(family) + r"\d+(?:\.\d+)*", item)]
    # numbers, not text: GLIBCXX_3.4.9 is older than GLIBCXX_3.4.30
    return max(numbered, key=lambda item: [int(part) for part in item[len(family) :].split(".")], default=None)
