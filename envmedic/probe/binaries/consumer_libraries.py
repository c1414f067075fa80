"""Which consumers of NVIDIA's libraries are installed, what each opens, and what is there of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from envmedic.compat import consumer_kinds as known
from envmedic.compat.consumer_kinds import ConsumerKind, GpuBuild
from envmedic.model.consumers import Consumer, OpenedLibrary
from envmedic.model.facts import Distribution
from envmedic.probe import layout
from envmedic.probe.elf import fatbin
from envmedic.probe.elf.dynamic import Elf, ElfError
from envmedic.probe.elf.loader import Search, expand
from envmedic.probe.packages.distributions import Scan
from envmedic.probe.readable import names

_FOLDERS = ("lib", "nvvm/lib64", "nvvm/lib")
"""Directories of libraries in a wheel of NVIDIA, below its own."""
_TOOLKIT = re.compile(r"cuda(?:-\d+(?:\.\d+)?)?")


def observe(prefix: Path, scans: Sequence[Scan], search: Search, variables: Mapping[str, str]) -> tuple[Consumer, ...]:
    """Return the consumers that are installed, in the order of the registry."""
    installed: dict[str, tuple[Distribution, Path]] = {}
    for scan in scans:
        for item in scan.installed:
            installed.setdefault(item.distribution.name, (item.distribution, scan.site))
    present = [kind for kind in known.consumers() if any(_there(pattern, installed) for pattern in kind.core)]
    if not present:
        return ()
    places = _Places.of(prefix, [scan.site for scan in scans], search, variables)
    return tuple(_consumer(kind, installed, places) for kind in present)


def _there(pattern: str, installed: Iterable[str]) -> list[known.Matched]:
    return list(known.matching(pattern, installed))


class _Places(msgspec.Struct, frozen=True):
    """Where libraries of NVIDIA are looked for."""

    prefix: Path
    wheels: Mapping[str, Path]
    """Libraries in NVIDIA's wheels, by file name."""
    search: Search
    toolkits: tuple[str, ...]
    """Directories of libraries of CUDA toolkits."""

    @classmethod
    def of(cls, prefix: Path, sites: Iterable[Path], search: Search, variables: Mapping[str, str]) -> _Places:
        found: dict[str, Path] = {}
        for site in sites:
            for folder in (site / "nvidia" / name / part for name in names(site / "nvidia") for part in _FOLDERS):
                for name in names(folder):
                    if ".so" in name:
                        found.setdefault(name, folder / name)
        roots = [variables[name] for name in ("CUDA_PATH", "CUDA_HOME") if variables.get(name)]
        roots += [f"/usr/local/{name}" for name in names(Path("/usr/local")) if _TOOLKIT.fullmatch(name)]
        # conda's packages of CUDA put their libraries beside Python's
        roots.append(str(prefix))
        toolkits = tuple(os.path.join(root, part) for root in roots for part in ("lib64", "lib", "nvvm/lib64"))  # noqa: PTH118  # strings, as in `Search`
        return cls(prefix, found, search, toolkits)

    def find(self, soname: str, looks: Iterable[str], rpath: Iterable[str]) -> tuple[Path | None, bool]:
        """The file of that name, and whether a consumer that `looks` there finds it."""
        for place in looks:
            path = self._in(place, soname, rpath)
            if path is not None:
                return path, True
        for place in ("wheels", "toolkit", "LD_LIBRARY_PATH", "system"):
            path = self._in(place, soname, rpath)
            if path is not None:
                return path, False
        return None, False

    def _in(self, place: str, soname: str, rpath: Iterable[str]) -> Path | None:
        if place == "wheels":
            return self.wheels.get(soname)
        if place == "system":
            cached = self.search.cache.get(soname, ())
            return next(iter(map(Path, cached)), None) or _first(self.search.defaults, soname)
        directories = {"rpath": rpath, "LD_LIBRARY_PATH": self.search.library_path, "toolkit": self.toolkits}
        return _first(directories.get(place, ()), soname)


def _first(directories: Iterable[str], name: str) -> Path | None:
    candidates = (Path(directory, name) for directory in directories)
    return next((path for path in candidates if path.exists()), None)


def _consumer(kind: ConsumerKind, installed: Mapping[str, tuple[Distribution, Path]], places: _Places) -> Consumer:
    own = [item.name for pattern in kind.core for item in _there(pattern, installed)]
    every = dict.fromkeys([*own, *(item.name for part in (*kind.parts, *kind.cpu) for item in _there(part, installed))])
    stated = tuple(f"{name} {installed[name][0].version}" for name in every)
    version = installed[own[0]][0].version
    found = next(_builds(kind, installed), None)
    if found is None:
        return Consumer(name=kind.name, version=version, distributions=stated, build=None, cuda=None)
    build, matched = found
    distribution, site = installed[matched.name]
    files = [_read(path) for pattern in build.files for path in sorted(site.glob(known.filled(pattern, matched.cuda)))]
    linked = tuple(dict.fromkeys(name for item in files for name in item.needed if known.part_of(name) is not None))
    cuda = _release(build, matched, linked, installed)
    rpath = tuple(dict.fromkeys(entry for item in files for entry in item.rpath))
    looks = build.looks or kind.looks
    opened = [
        *((name, "linked") for name in linked),
        *((name, "opened") for name in _sonames(build.opens, cuda)),
        *((name, "opened later") for name in _sonames(build.also, cuda)),
    ]
    return Consumer(
        name=kind.name,
        version=version,
        distributions=stated,
        build=f"{distribution.name} {distribution.version}",
        cuda=cuda,
        libraries=tuple(_opened(name, how, looks, rpath, places) for name, how in dict(reversed(opened)).items())[::-1],
        sass=tuple(dict.fromkeys(code for item in files for code in item.sass)),
        ptx=tuple(dict.fromkeys(code for item in files for code in item.ptx)),
    )


def _builds(
    kind: ConsumerKind, installed: Mapping[str, tuple[Distribution, Path]]
) -> Iterator[tuple[GpuBuild, known.Matched]]:
    for build in kind.builds:
        for item in _there(build.distribution, installed):
            if known.suits(build, installed[item.name][0].version):
                yield build, item


def _release(
    build: GpuBuild, matched: known.Matched, linked: Iterable[str], installed: Mapping[str, tuple[Distribution, Path]]
) -> str | None:
    """The major release of CUDA of a build."""
    if build.cuda == "{cuda}":
        return known.major_of(matched.cuda)
    if build.cuda.startswith("@"):
        other = installed.get(build.cuda[1:])
        return other[0].version.partition(".")[0] if other is not None else None
    if build.cuda:
        return build.cuda
    # a library such as cuRAND has one name in several releases: that of the runtime or of cuBLAS is in one alone
    telling = [found[1] for name in linked if (found := known.part_of(name)) is not None and len(found[1]) == 1]
    return next((major for majors in telling for major in majors), None)


def _sonames(parts: Iterable[str], cuda: str | None) -> Iterator[str]:
    for part in parts:
        name = known.soname(part, cuda) if cuda is not None else None
        if name is not None:
            yield name


class _File(msgspec.Struct, frozen=True):
    """What one library of a consumer says of itself."""

    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    sass: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()


def _read(path: Path) -> _File:
    try:
        with closing(Elf(path)) as elf:
            code = fatbin.read(elf)
            origin = str(path.parent)
            rpath = tuple(os.path.normpath(expand(item, origin)) for item in (*elf.rpath, *elf.runpath))
            return _File(elf.needed, rpath, code.sass, code.ptx)
    except (OSError, ElfError):  # damage is a fact of its own, see `record_check` and `extensions`
        return _File()


def _opened(name: str, how: str, looks: Iterable[str], rpath: Iterable[str], places: _Places) -> OpenedLibrary:
    path, seen = places.find(name, looks, rpath)
    shown = layout.relative(path, places.prefix) if path is not None else None
    return msgspec.convert({"soname": name, "how": how, "path": shown, "seen": seen}, OpenedLibrary)
