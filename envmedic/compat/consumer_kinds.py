"""The consumers of NVIDIA's libraries: what each opens, where it looks, and what states its needs. Pure.

`data/consumers.json` has a row for each; nothing else names one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec

from envmedic.compat import tables
from envmedic.compat.versions import allows
from envmedic.model.base import Model

ROCM = "rocm"
"""In the place of a CUDA release: a build for AMD's GPUs."""
_CUDA = "{cuda}"


class NvidiaLibrary(Model, frozen=True, kw_only=True):
    """One library of NVIDIA, by the major release of CUDA."""

    part: str
    soname: dict[str, str]
    requirement: dict[str, str]
    """What installs it, as an installer takes it."""


class GpuBuild(Model, frozen=True, kw_only=True):
    """A distribution that brings what runs on GPUs, in a range of its releases."""

    distribution: str
    versions: str = ""
    cuda: str
    """Major release of CUDA; ``{cuda}``: as in the name; ``@NAME``: of that distribution; empty: as its files link."""
    opens: tuple[str, ...] = ()
    """Parts that it opens by name, and does not work without."""
    also: tuple[str, ...] = ()
    """Parts that it opens by name when a function needs them."""
    files: tuple[str, ...] = ()
    """Its libraries that link NVIDIA's, or hold code for GPUs, as patterns below site-packages."""
    looks: tuple[str, ...] = ()
    """Where these releases look, if not as the others do."""


class ExtraOf(Model, frozen=True, kw_only=True):
    """An extra that states what the GPU build needs."""

    distribution: str
    extra: str


class Fallback(Model, frozen=True, kw_only=True):
    """How it says that it runs on the CPU."""

    says: str
    source: str


class ConsumerKind(Model, frozen=True, kw_only=True):
    """One consumer."""

    name: str
    title: str
    modules: tuple[str, ...]
    core: tuple[str, ...]
    """Distributions by which it is installed; the first one there has its version."""
    gpu_from: str
    """What to install for the GPU, in words."""
    builds: tuple[GpuBuild, ...]
    cpu: tuple[str, ...] = ()
    """Distributions that are builds for the CPU."""
    parts: tuple[str, ...] = ()
    """Distributions that move together."""
    extras: tuple[ExtraOf, ...] = ()
    equal: tuple[str, ...] = ()
    """Distributions that compare their versions when they start, and want the same one."""
    exclusive: tuple[str, ...] = ()
    """Distributions of which one environment has one."""
    keep: tuple[str, ...] = ()
    """Those of `exclusive` that the others make way for."""
    universal: bool = False
    """Whether one wheel serves CPU and GPU, so that missing libraries alone are no fault."""
    beside_torch: bool = False
    """Whether it is an extension of torch, and finds what torch has loaded."""
    repaired: bool = True
    own_code: bool = False
    """Whether it runs the code for GPUs that its libraries hold, and compiles none for other GPUs."""
    gpu_build: str = ""
    """What puts a build for the GPU in the place of one for the CPU, as an installer takes it."""
    looks: tuple[str, ...]
    """``rpath``, ``wheels``, ``LD_LIBRARY_PATH``, ``system``, ``toolkit``, ``torch``."""
    code: str
    """Where its code for GPUs comes from, in words."""
    falls_back: tuple[Fallback, ...] = ()
    accepts: str
    """Which releases go together, in words."""
    check: str
    source: tuple[str, ...]


class _File(Model, frozen=True, kw_only=True):
    libraries: tuple[NvidiaLibrary, ...]
    consumers: tuple[ConsumerKind, ...]


class Matched(msgspec.Struct, frozen=True):
    """A pattern that an installed distribution fits."""

    name: str
    cuda: str
    """What stands for ``{cuda}`` in its name, empty without any."""


@lru_cache(maxsize=1)
def _file() -> _File:
    return msgspec.json.decode(tables.read_data_file("consumers.json"), type=_File)


def consumers() -> tuple[ConsumerKind, ...]:
    """Return every consumer."""
    return _file().consumers


@lru_cache(maxsize=1)
def by_name() -> Mapping[str, ConsumerKind]:
    """Return every consumer by its name."""
    return {item.name: item for item in consumers()}


@lru_cache(maxsize=1)
def libraries() -> Mapping[str, NvidiaLibrary]:
    """Return NVIDIA's libraries by their part."""
    return {item.part: item for item in _file().libraries}


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(re.escape(_CUDA), r"(?P<cuda>\d+)"))


def matching(pattern: str, names: Iterable[str]) -> Iterator[Matched]:
    """Yield the names that fit a pattern of distributions."""
    known = _pattern(pattern)
    for name in names:
        found = known.fullmatch(name)
        if found is not None:
            yield Matched(name, found["cuda"] if _CUDA in pattern else "")


def major_of(cuda: str) -> str:
    """Return the major release of CUDA that a name tells: 12 of ``12`` and ``12x``, 11 of ``110``."""
    return cuda[:2]


def filled(pattern: str, cuda: str) -> str:
    """Return a pattern with its release filled in."""
    return pattern.replace(_CUDA, cuda)


def suits(build: GpuBuild, version: str) -> bool:
    """Whether a row is about that release."""
    return not build.versions or allows(build.versions, version.partition("+")[0])


def part_of(soname: str) -> tuple[str, frozenset[str]] | None:
    """Return the part that a soname is of, with the major releases of CUDA that have it; None for other libraries."""
    for item in libraries().values():
        majors = frozenset(major for major, name in item.soname.items() if name == soname)
        if majors:
            return item.part, majors
    return None


def soname(part: str, cuda: str) -> str | None:
    """Return the name by which a part is opened in a major release of CUDA; None where that release has none."""
    return libraries()[part].soname.get(cuda)


def requirement(name: str, cuda: str) -> str | None:
    """Return what installs the library of that soname for a major release of CUDA; None where no wheel does."""
    found = part_of(name)
    return libraries()[found[0]].requirement.get(cuda) if found is not None else None
