"""Which packages changed files can affect when they are imported; read from files, nothing is imported.

A package is affected if its distribution changed, requires one that did, names one in an import or as a text (guarded,
lazy or in an entry point), requires and names an affected one, uses a part of a package that names a changed one, or
loads a library that changed. That it merely requires an affected one does not count: extras lead from almost any
distribution to almost any other, and what a package nowhere names it does not import.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from envmedic.forked import Fork, begun, free_cores, spread
from envmedic.probe.elf.dynamic import Elf, ElfError
from envmedic.probe.layout import read_layout, site_packages
from envmedic.probe.metadata import normalise, parse_record

_REQUIRES = re.compile(rb"^Requires-Dist:[ \t]*([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)
_LIBRARY = re.compile(r"(?P<stem>.+?\.so)(\.[0-9.]+)?")
_GROUP = re.compile(r"^\[([^\]]+)\]", re.MULTILINE)
_SCRIPTS = frozenset({"console_scripts", "gui_scripts"})
_EVERYWHERE = re.compile(r"(.*\.pth|pyvenv\.cfg|bin/python[0-9.]*|(.*/)?(site|user)customize\.py)")
"""Files that every start of Python reads."""
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)\b[^#\n]*", re.MULTILINE)
_HASHED = re.compile(r"[.-][0-9a-f]{8}\.so\b")
"""A library that a wheel carries under a name with a part of its hash, which only what was built with it knows."""
_CORES_TO_FORESEE = 4
_READERS = 16
"""Processes that read sources at a time."""
_PART = 200
"""Modules that one of them reads before the next ones."""


@dataclass
class _Package:
    """An installed distribution, by its files."""

    name: str
    site: Path
    files: tuple[str, ...]
    requires: frozenset[str] = frozenset()
    entry_points: str = ""
    tops: frozenset[str] = field(default_factory=frozenset)

    def modules(self) -> Iterator[str]:
        """Their paths. Large environments have tens of thousands, so these are texts."""
        return (f"{self.site}/{file}" for file in self.files if file.endswith(".py"))

    def libraries(self) -> Iterator[Path]:
        return (self.site / file for file in self.files if ".so" in file and _is_library(file))


@dataclass(frozen=True)
class _Touched:
    """What a change touches itself, by which the packages are found that it can affect."""

    moved: frozenset[str]
    """Distributions that come, go or change."""
    names: frozenset[str]
    """Their import names, and those of changed files that nobody lists."""
    groups: frozenset[str]
    """Groups of entry points that others load from them."""
    libraries: frozenset[str]
    """Their libraries, by file name."""

    @property
    def named_libraries(self) -> frozenset[str]:
        """The libraries that a source can name, without the version."""
        return frozenset(_stem(name) for name in self.libraries if not _HASHED.search(name))


@dataclass(frozen=True)
class _Spared:
    """What a change that touches this cannot affect."""

    touched: _Touched
    loading: frozenset[str]
    """Packages that load one of the libraries."""
    spared: frozenset[str]
    """Top-level import names."""

    def holds_for(self, touched: _Touched, loading: Collection[str]) -> bool:
        """Whether a change that touches `touched` affects nothing more; `loading` are those who load its libraries."""
        mine = self.touched
        return (
            touched.moved <= mine.moved
            and touched.names <= mine.names
            and touched.groups <= mine.groups
            and touched.named_libraries <= mine.named_libraries
            and self.loading | mine.moved >= set(loading)
        )


class Affected:
    """Finds what a change can affect; of one that is foreseen it reads most beside the work before it."""

    def __init__(self) -> None:
        self._begun: Fork[_Spared] | None = None
        self._foreseen: _Spared | None = None

    @contextmanager
    def foresee(self, tree: Path, distributions: Collection[str]) -> Iterator[None]:
        """Read on other cores, while the block runs, what a change of `distributions` in `tree` cannot affect."""
        if free_cores() < _CORES_TO_FORESEE or (tree / "conda-meta").is_dir():
            yield
            return
        with begun(lambda: _foreseen(tree, distributions)) as fork:
            self._begun = fork
            try:
                yield
            finally:
                self._begun = self._foreseen = None

    def unaffected(
        self, before: Path, after: Path, changed: Collection[str], distributions: Collection[str], *, near: bool = False
    ) -> frozenset[str]:
        """Top-level import names of the tree `after` that `changed` files and `distributions` cannot affect.

        `changed` has paths relative to both trees. Empty where any import can be affected: by what every start of Python
        reads, by its standard library, or in a conda prefix, whose packages share libraries and data. With `near`, meant
        for distributions that are only added, what is affected through another package alone is left out as well: that
        package is imported itself; and in a conda prefix too, unless a library changed outside of site-packages. Raises
        OSError.
        """
        sites = _sites(after)
        homes = [site.relative_to(after) for site in sites]
        loose = [name for name in changed if not any(Path(name).is_relative_to(home) for home in homes)]
        if (after / "conda-meta").is_dir() and not (near and not any(_is_library(name) for name in loose)):
            return frozenset()
        if not sites or any(map(_EVERYWHERE.fullmatch, changed)) or any(_of_python(name) for name in loose):
            return frozenset()
        parsed: dict[bytes, tuple[str, ...]] = {}
        now = [item for site in sites for item in _packages(site, parsed)]
        old = [item for site in _sites(before) for item in _packages(site, parsed)]
        moved = (
            _changed(old, before, changed) | _changed(now, after, changed) | {normalise(name) for name in distributions}
        )
        touched = _touched(
            [*old, *now],
            moved,
            _unowned(now, after, changed),
            {Path(name).name for name in changed if _is_library(name)},
        )
        loading = _loading(now, touched.libraries)
        if self._begun is not None and not near:
            self._foreseen = self._foreseen or self._begun.value()
            if self._foreseen.holds_for(touched, loading):
                return self._foreseen.spared - _tops(now, moved) - touched.names
        return _spared(now, touched, loading, near=near)


def _foreseen(tree: Path, distributions: Collection[str]) -> _Spared:
    parsed: dict[bytes, tuple[str, ...]] = {}
    now = [item for site in _sites(tree) for item in _packages(site, parsed)]
    touched = _touched(now, {normalise(name) for name in distributions}, set(), set())
    loading = _loading(now, touched.libraries)
    return _Spared(touched, frozenset(loading), _spared(now, touched, loading, near=False))


def _touched(packages: Iterable[_Package], moved: set[str], unowned: set[str], libraries: set[str]) -> _Touched:
    """What a change touches that moves distributions, `packages` being those before and after it."""
    of_moved = [item for item in packages if item.name in moved]
    return _Touched(
        moved=frozenset(moved),
        names=frozenset({top for item in of_moved for top in item.tops} | unowned),
        groups=frozenset({group for item in of_moved for group in _groups(item)}),
        libraries=frozenset({file.name for item in of_moved for file in item.libraries()} | libraries),
    )


def _spared(now: Sequence[_Package], touched: _Touched, loading: set[str], *, near: bool) -> frozenset[str]:
    """Top-level import names of `now` that a change cannot affect; `loading` are those who load its libraries."""
    moved, names = touched.moved, touched.names
    known = moved | loading
    others = [item for item in now if item.name not in known]
    tops = {item.name: item.tops for item in now}
    named = _named(others, names | touched.groups, touched.named_libraries, tops)
    direct = known | {name for name, (direct, _) in named.items() if direct}
    asking = {item.name for item in now if item.requires & moved}
    if near:
        return _tops(now) - _tops(now, direct | asking) - names
    reached = direct | asking
    while new := {
        item.name
        for item in others
        if item.name not in reached
        and any(tops[other] & named[item.name][1] for other in item.requires & reached if other in tops)
    }:
        reached |= new
    others = [item for item in others if item.name not in reached]
    reached |= _naming_parts(others, _tops(now, direct))
    return _tops(now) - _tops(now, reached) - names


def _tops(packages: Iterable[_Package], named: Collection[str] | None = None) -> frozenset[str]:
    """The top-level import names of `packages`, or of those that are `named`."""
    return frozenset(top for item in packages if named is None or item.name in named for top in item.tops)


def _sites(tree: Path) -> tuple[Path, ...]:
    found = read_layout(tree)
    return tuple(site for site in site_packages(found, found.version) if site.is_relative_to(tree))


def _is_library(file: str) -> bool:
    return _LIBRARY.fullmatch(file.rpartition("/")[2]) is not None


def _of_python(name: str) -> bool:
    return re.match(r"lib(64)?/python[0-9.]+/(?!site-packages/)", name) is not None


def _packages(site: Path, parsed: dict[bytes, tuple[str, ...]]) -> Iterator[_Package]:
    """The distributions there; `parsed` keeps what each RECORD lists, since those of two trees are mostly the same."""
    for info in sorted(site.glob("*.dist-info")):
        record, metadata = info / "RECORD", info / "METADATA"
        if not (record.is_file() and metadata.is_file()):
            continue  # its names stay unknown, and are imported
        listed = record.read_bytes()
        if listed not in parsed:
            parsed[listed] = tuple(row for row in parse_record(listed).paths if not row.startswith(("/", "../")))
        head = metadata.read_bytes()
        points = info / "entry_points.txt"
        yield _Package(
            name=normalise(info.name.removesuffix(".dist-info").partition("-")[0]),
            site=site,
            files=parsed[listed],
            requires=frozenset(normalise(found.decode()) for found in _REQUIRES.findall(head)),
            entry_points=points.read_text(encoding="utf-8", errors="replace") if points.is_file() else "",
            tops=frozenset(filter(None, map(_top, parsed[listed]))),
        )


def _top(file: str) -> str | None:
    """The top-level import name that a file of site-packages belongs to."""
    first, inside, _ = file.partition("/")
    if first.endswith((".dist-info", ".data")) or first == "__pycache__":
        return None
    name = first if inside else first.partition(".")[0] if first.endswith((".py", ".so")) else ""
    return name if name.isidentifier() else None


def _changed(packages: Iterable[_Package], tree: Path, changed: Collection[str]) -> set[str]:
    """The packages that list one of the files as theirs."""
    names = set(changed)
    found = set()
    for item in packages:
        base = item.site.relative_to(tree).as_posix()
        if any(f"{base}/{file}" in names for file in item.files):
            found.add(item.name)
    return found


def _unowned(packages: Sequence[_Package], tree: Path, changed: Collection[str]) -> set[str]:
    """Top-level names of changed files in site-packages that no distribution lists."""
    bases = {item.site: f"{item.site.relative_to(tree).as_posix()}/" for item in packages}
    listed = {bases[item.site] + file for item in packages for file in item.files}
    own = [
        name.removeprefix(base)
        for name in changed
        if name not in listed
        for base in set(bases.values())
        if name.startswith(base)
    ]
    return {top for name in own if (top := _top(name))}


def _groups(item: _Package) -> set[str]:
    """The groups of entry points that others load from a package."""
    return set(_GROUP.findall(item.entry_points)) - _SCRIPTS


def _stem(library: str) -> str:
    found = _LIBRARY.fullmatch(library)
    return found["stem"] if found else library


def _loading(packages: Iterable[_Package], changed: Collection[str]) -> set[str]:
    """The packages with a library that loads one of the `changed`, itself or through others."""
    if not changed:
        return set()
    files = [(item.name, file) for item in packages for file in item.libraries()]
    found_needs = spread(lambda number: _needed(files[number][1], changed), len(files), most=_READERS)
    needs = {file: (owner, *found) for (owner, file), found in zip(files, found_needs, strict=True)}
    reached = set(changed)
    found: set[str] = set()
    while new := [file for file, (_, needed, _) in needs.items() if needed & reached]:
        for file in new:
            owner, _, soname = needs.pop(file)
            found.add(owner)
            reached |= {file.name, soname}
    return found


def _needed(library: Path, changed: Collection[str]) -> tuple[frozenset[str], str]:
    """The names of the libraries that one asks for, and its own; what cannot be read may load any of the `changed`."""
    try:
        with closing(Elf(library)) as elf:
            return frozenset(elf.needed), elf.soname or library.name
    except (ElfError, OSError):
        return frozenset(changed), library.name


def _named(
    packages: Sequence[_Package], names: frozenset[str], libraries: frozenset[str], tops: dict[str, frozenset[str]]
) -> dict[str, tuple[bool, frozenset[str]]]:
    """By package: whether it names one of `names` or `libraries`, and which packages it names that it requires.

    An import, a text of its own or an entry point names a package, and a whole word a library.
    """
    required = {item.name: frozenset(top for name in item.requires for top in tops.get(name, ())) for item in packages}
    parts = _parts(packages)

    def scan(number: int) -> tuple[bool, frozenset[str]]:
        item, modules = parts[number]
        return _scanned(modules, names | required[item.name], libraries)

    direct = {
        item.name: any(re.search(rf"=\s*{re.escape(name)}\b", item.entry_points) for name in names) for item in packages
    }
    seen: dict[str, set[str]] = {item.name: set() for item in packages}
    for (item, _), (loads, found) in zip(parts, spread(scan, len(parts), most=_READERS), strict=True):
        direct[item.name] = direct[item.name] or loads or not names.isdisjoint(found)
        seen[item.name] |= found
    return {name: (direct[name], required[name] & seen[name]) for name in direct}


def _parts(packages: Iterable[_Package]) -> list[tuple[_Package, tuple[str, ...]]]:
    """The modules of packages in parts of like size: a third of all can be those of one."""
    return [
        (item, modules[first : first + _PART])
        for item in packages
        for modules in [tuple(item.modules())]
        for first in range(0, len(modules), _PART)
    ]


def _scanned(modules: Iterable[str], names: frozenset[str], libraries: frozenset[str]) -> tuple[bool, frozenset[str]]:
    """Whether sources name one of `libraries`, and which of `names`."""
    loaded = [(name.encode(), re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)".encode())) for name in libraries]
    left = {name: name.encode() for name in names}
    loads = False
    for data in _sources(modules):
        here = [name for name, word in left.items() if word in data]
        if here:
            imports = b"\n".join(_IMPORTS.findall(data))
            for name in here:
                if _names(name, data, imports):
                    del left[name]
        loads = loads or any(word in data and pattern.search(data) for word, pattern in loaded)
    return loads, names - left.keys()


def _names(name: str, data: bytes, imports: bytes) -> bool:
    """Whether a source names a package in its `imports`, or as the whole or the beginning of a text."""
    word, mark = _word(name)
    return any(text in data for text in mark) or word.search(imports) is not None


@cache
def _word(name: str) -> tuple[re.Pattern[bytes], tuple[bytes, ...]]:
    """A name as a word of its own, and as it stands at the beginning of a text."""
    marks = tuple(f"{quote}{name}{end}".encode() for quote in "\"'" for end in (quote, "."))
    return re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)".encode()), marks


def _naming_parts(packages: Sequence[_Package], tops: frozenset[str]) -> set[str]:
    """The packages that import a part of one of `tops`: what `import TOP` alone loads is imported by itself."""
    if not tops:
        return set()
    either = "|".join(sorted(map(re.escape, tops)))
    part = rf"^[ \t]*(?:from[ \t]+(?:{either})(?:[ \t]+import\b|\.\w)|import\b[^#\n]*(?<![\w.])(?:{either})\.\w)"
    pattern = re.compile(rf"{part}|[\"'](?:{either})\.[\w.]+[\"']".encode(), re.MULTILINE)
    words = [name.encode() for name in tops]

    parts = _parts(packages)

    def names_one(number: int) -> bool:
        sources = _sources(parts[number][1])
        return any(any(word in data for word in words) and pattern.search(data) for data in sources)

    found = spread(names_one, len(parts), most=_READERS)
    return {item.name for (item, _), naming in zip(parts, found, strict=True) if naming}


def _sources(modules: Iterable[str]) -> Iterator[bytes]:
    for module in modules:
        try:
            with open(module, "rb") as file:  # noqa: PTH123  # see `modules`
                data = file.read()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            continue
        # a statement may go on in the next line
        yield data.replace(b"\\\n", b" ") if b"\\\n" in data else data
