"""What the run-time loader would do with a library, without loading it.

`Process` models the link map of a Python process: which files each NEEDED name leads to, in the order of
``ld.so(8)`` (DT_RPATH of the library and of its loaders, LD_LIBRARY_PATH, DT_RUNPATH, the cache, the default
directories), and in which scope a symbol is looked up: the global one (the program, its needs, and what was
opened with RTLD_GLOBAL), then the opened library and its needs, breadth first. What other libraries have
brought into the process is found by name, but its symbols are not in scope.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from envmedic.probe.elf import ldcache, symbol_versions
from envmedic.probe.elf.dynamic import Elf, ElfError, gnu_hash
from envmedic.probe.elf.symbol_versions import VersionNeed

DEFAULT_DIRECTORIES = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_PYTHON_SYMBOL = re.compile(rb"_?Py[A-Z_]")
_ORIGIN = re.compile(r"\$(?:ORIGIN\b|\{ORIGIN\})")


class Search(msgspec.Struct, frozen=True):
    """Where the loader looks apart from the libraries' own paths."""

    library_path: tuple[str, ...] = ()
    """LD_LIBRARY_PATH."""
    preload: tuple[str, ...] = ()
    """LD_PRELOAD: paths, or names that are searched for."""
    cache: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    defaults: tuple[str, ...] = DEFAULT_DIRECTORIES

    @classmethod
    def here(cls, variables: Mapping[str, str] | None = None) -> Search:
        """The rules for a process started here with `variables`, by default those of this process."""
        given = os.environ if variables is None else variables
        entries = re.split("[:;]", given.get("LD_LIBRARY_PATH", ""))
        preload = re.split(r"[:\s]+", given.get("LD_PRELOAD", ""))
        return cls(
            library_path=tuple(filter(None, entries)), preload=tuple(filter(None, preload)), cache=ldcache.system()
        )


class Loaded(msgspec.Struct, eq=False):
    """A library in the link map."""

    path: Path
    elf: Elf
    loader: Loaded | None
    needs: list[Loaded] = msgspec.field(default_factory=list)
    missing: list[str] = msgspec.field(default_factory=list)

    @property
    def origin(self) -> str:
        """Directory that ``$ORIGIN`` stands for."""
        return os.path.dirname(self.path)  # noqa: PTH120  # called for every search path; Path.parent is 10 times slower


class MissingVersion(msgspec.Struct, frozen=True):
    """A version that a library asks another one for, which does not define it."""

    version: str
    found: Path
    """The library that was found under the name."""
    needed_by: Path


class LoadCheck(msgspec.Struct, frozen=True):
    """The verdict on one library."""

    missing: tuple[str, ...] = ()
    unresolved: tuple[bytes, ...] = ()
    versions: tuple[MissingVersion, ...] = ()


class Process:
    """A link map. Libraries stay open until `close`."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.program: Loaded | None = None
        self.siblings: dict[str, Path] = {}
        """Libraries that a package opens itself before it opens those that need them, by soname."""
        self.fallbacks: Mapping[str, Path] = {}
        """Libraries that some package may have opened, by file name: taken where nothing else is found."""
        self._by_name: dict[str, Loaded] = {}
        self._by_file: dict[tuple[int, int], Loaded] = {}
        self._global: list[Loaded] = []
        self._opened: list[Elf] = []
        self._known: dict[bytes, bool] = {}
        """Whether the global scope defines a name, for those that were asked for."""
        self._versions: dict[Path, frozenset[str]] = {}

    def close(self) -> None:
        """Close the libraries, those of forks too."""
        for elf in self._opened:
            elf.close()

    def fork(self) -> Process:
        """A process with the same libraries, whose later ones do not show here. This one closes the files."""
        child = Process(self.search)
        child.program = self.program
        child._by_name = dict(self._by_name)
        child._by_file = dict(self._by_file)
        child._global = list(self._global)
        child._opened = self._opened
        child._known = self._known
        child._versions = self._versions
        return child

    def open(self, path: Path, *, everywhere: bool = False) -> Loaded:
        """Load `path` with all that it needs; `everywhere` is RTLD_GLOBAL. Raises `ElfError` or OSError."""
        root = self._map(path, None)
        queue = [root]
        for library in queue:  # grows while it is walked: breadth first, as the loader does
            queue.extend(self._load_needs(library))
        if everywhere:
            self._global.extend(item for item in scope(root) if item not in self._global)
            self._known = {}
        return root

    def start(self, program: Path) -> None:
        """Load the main program into the global scope, then what LD_PRELOAD names. Raises `ElfError` or OSError."""
        self.program = self.open(program, everywhere=True)
        for name in self.search.preload:
            self._preload(name, self.program)

    def _preload(self, name: str, program: Loaded) -> None:
        """Load a library into the global scope; what is not found is left out, as the loader does after saying so."""
        found = self._find(name, program)
        if found is not None:
            self.open(found.path, everywhere=True)

    def _load_needs(self, library: Loaded) -> list[Loaded]:
        """Find what `library` needs and return those that are new to the process."""
        known = len(self._by_file)
        fresh: list[Loaded] = []
        for name in library.elf.needed:
            need = self._find(name, library)
            if need is None:
                library.missing.append(name)
                continue
            library.needs.append(need)
            if len(self._by_file) > known:
                known = len(self._by_file)
                fresh.append(need)
        return fresh

    def _map(self, path: Path, loader: Loaded | None) -> Loaded:
        status = path.stat()
        # by device and inode, as glibc compares files: libfoo.so and its link libfoo.so.1 are one library
        identity = (status.st_dev, status.st_ino)
        known = self._by_file.get(identity)
        if known is None:
            elf = Elf(path)
            self._opened.append(elf)
            # glibc skips libraries for another processor in its search, as it does files that are no ELF
            if self.program is not None and elf.machine != self.program.elf.machine:
                raise ElfError("made for another processor")
            known = self._by_file[identity] = Loaded(path, elf, loader)
        for name in (known.elf.soname, path.name):
            if name is not None:
                self._by_name.setdefault(name, known)
        return known

    def _find(self, name: str, needed_by: Loaded) -> Loaded | None:
        # a loaded soname satisfies every later need, whatever the search path: why a wrong CUDA library stays in use
        if name in self._by_name:
            return self._by_name[name]
        for candidate in self._candidates(name, needed_by):
            try:
                found = self._map(candidate, needed_by)
            except (OSError, ElfError):  # the loader, too, goes on to the next directory
                continue
            self._by_name.setdefault(name, found)
            return found
        return None

    def _candidates(self, name: str, needed_by: Loaded) -> Iterator[Path]:
        if "/" in name:
            yield Path(name)
            return
        if name in self.siblings:
            yield self.siblings[name]
        for directory in self._directories(needed_by):
            if os.path.exists(os.path.join(directory, name)):  # noqa: PTH110, PTH118  # hundreds of look-ups
                yield Path(directory, name)
        yield from map(Path, self.search.cache.get(name, ()))
        yield from (Path(directory, name) for directory in self.search.defaults)
        if name in self.fallbacks:
            yield self.fallbacks[name]

    def _directories(self, library: Loaded) -> Iterator[str]:
        """Search path of `library`, before cache and defaults, in the loader's order."""
        if not library.elf.runpath:
            ancestor: Loaded | None = library
            while ancestor is not None:
                yield from rpath(ancestor)
                ancestor = ancestor.loader
            if self.program is not None:
                yield from rpath(self.program)
        yield from self.search.library_path
        yield from (expand(item, library.origin) for item in library.elf.runpath)

    def missing(self, root: Loaded) -> tuple[str, ...]:
        """NEEDED names in the closure of `root` that lead to no file."""
        return tuple(dict.fromkeys(name for item in scope(root) for name in item.missing))

    def check_needs(self, path: Path) -> LoadCheck:
        """Like `check`, of what is missing alone: cheap for libraries with very many symbols."""
        return LoadCheck(missing=self.missing(self.open(path)))

    def check(self, path: Path, *, mangled: bool = True) -> LoadCheck:
        """Say whether `path` would load (RTLD_NOW) into this process. Raises `ElfError` or OSError.

        Without `mangled`, names of C++ are not looked at. Symbols of Python's own interface are not
        looked at where the program could not be read.
        """
        before = set(self._by_file)
        root = self.open(path)
        closure = scope(root)
        # only what this library brings in is checked: the rest was checked when it was loaded, as dlopen does
        fresh = [item for identity, item in self._by_file.items() if identity not in before and item in closure]
        asked = [(item, symbol_versions.needs(item.elf)) for item in fresh]
        wanted = _undefined(asked, mangled=mangled)
        if self.program is None:
            wanted = [name for name in wanted if not _PYTHON_SYMBOL.match(name)]
        missing = dict.fromkeys(name for item in fresh for name in item.missing)
        local = [item for item in closure if item not in self._global]
        return LoadCheck(
            missing=tuple(missing),
            unresolved=self._not_global(unresolved((name for name in wanted if not self._known.get(name)), local)),
            versions=tuple(version for item, needed in asked for version in self._missing_versions(item, needed)),
        )

    def file(self, path: Path) -> Elf:
        """A library that was loaded from `path`, open until `close`. Raises `ElfError` where the file was replaced."""
        status = path.stat()
        loaded = self._by_file.get((status.st_dev, status.st_ino))
        if loaded is None:
            raise ElfError("replaced while it was read")
        return loaded.elf

    def loaded(self, soname: str) -> Loaded | None:
        """The library that is in the process under that name."""
        return self._by_name.get(soname)

    def every(self) -> tuple[Loaded, ...]:
        """All libraries in the process, in the order in which they were loaded."""
        return tuple(self._by_file.values())

    def unresolved_of(self, library: Loaded) -> tuple[bytes, ...]:
        """Symbols that `library` itself needs and nothing in the process defines."""
        return unresolved(
            self._not_global(_undefined([(library, symbol_versions.needs(library.elf))], mangled=True)), self.every()
        )

    # answers are kept per process: hundreds of modules ask for the same symbols of libpython and libtorch
    def _not_global(self, names: Sequence[bytes]) -> tuple[bytes, ...]:
        """Those of `names` that the global scope does not define. Many libraries ask for the same ones."""
        new = [name for name in names if name not in self._known]
        left = set(unresolved(new, self._global))
        self._known.update((name, name not in left) for name in new)
        return tuple(name for name in names if not self._known[name])

    def _missing_versions(self, library: Loaded, needed: Iterable[VersionNeed]) -> Iterator[MissingVersion]:
        """Versions that `library` requires and the libraries found do not define."""
        for need in needed:
            found = self._by_name.get(need.soname)
            if found is None or need.weak:
                continue
            defined = self._defined_versions(found)
            if defined and need.version not in defined:
                yield MissingVersion(need.version, found.path, library.path)

    def _defined_versions(self, library: Loaded) -> frozenset[str]:
        known = self._versions.get(library.path)
        if known is None:
            known = self._versions[library.path] = frozenset(symbol_versions.definitions(library.elf))
        return known


def scope(root: Loaded) -> list[Loaded]:
    """`root` and all that it needs, breadth first: the local scope of its symbols."""
    queue = [root]
    seen = {id(root)}
    for library in queue:
        for need in library.needs:
            if id(need) not in seen:
                seen.add(id(need))
                queue.append(need)
    return queue


def rpath(library: Loaded) -> Iterator[str]:
    """DT_RPATH, which counts only where there is no DT_RUNPATH."""
    if not library.elf.runpath:
        yield from (expand(item, library.origin) for item in library.elf.rpath)


def expand(item: str, origin: str) -> str:
    """Fill in ``$ORIGIN``."""
    return _ORIGIN.sub(lambda _: origin, item)


def _undefined(libraries: Iterable[tuple[Loaded, Iterable[VersionNeed]]], *, mangled: bool) -> list[bytes]:
    """Names that these libraries leave undefined, except those with a version of a run-time library."""
    found = (
        item.elf.undefined(symbol_versions.run_time_indexes(needed), mangled=mangled) for item, needed in libraries
    )
    return list(dict.fromkeys(name for names in found for name in names))


def unresolved(wanted: Iterable[bytes], libraries: Iterable[Loaded]) -> tuple[bytes, ...]:
    """Those of `wanted` that no library defines, in their order."""
    left = {name: gnu_hash(name) for name in wanted}
    for library in libraries:
        if not left:
            break
        left = library.elf.lacking(left)
    return tuple(left)
