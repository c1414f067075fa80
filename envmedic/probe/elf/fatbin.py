"""GPU architectures of a library, read from the headers of its fat binaries.

CUDA's compiler puts device code into the sections ``.nv_fatbin`` and ``__nv_relfatbin`` (relocatable device
code: NCCL keeps most of its code there). Each fat binary is a 16-byte header and entries of machine code or
PTX. The format is not documented; the offsets and the suffix flags were established with nvcc 13.0 on code
made for each architecture, with and without suffix, and agree with cuobjdump's lists.
"""

from __future__ import annotations

import mmap
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from envmedic.probe.elf.dynamic import Elf, ElfError

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
ROCM_SECTION = ".hip_fatbin"
MAGIC = 0xBA55ED50
KIND_PTX, KIND_SASS = 1, 2
FLAG_ARCHITECTURE_SPECIFIC = 0x100000
"""The ``a`` suffix (sm_90a): runs on that capability alone."""
FLAG_FAMILY_SPECIFIC = 0x200000
"""The ``f`` suffix (sm_100f, since CUDA 12.9): runs on later minor versions of that major version too."""
COMMON = 0.5
"""Share of the fat binaries that must hold an architecture for it to count as built for.

A few kernels are compiled for more architectures than the rest (sm_90a in 1 of 340 fat binaries of
libtorch_cuda 2.5.1, sm_89 in 2 of 378 of 2.7.1), some for fewer, and the linker adds one fat binary without
PTX to a small extension; neither torch's own list nor what runs follows these."""

_HEADER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HxxIQ12xI8xQ")
"""Of an entry's header: kind, its own size, size of the code, architecture, flags."""
_ALIGNMENT = 8
_MAGIC_BYTES = struct.pack("<I", MAGIC)
_LONGEST_PADDING = 1 << 20
"""Bytes between two fat binaries, of which linkers leave a few; what comes after more of them is not looked for."""
_MOST = 1 << 20
"""Fat binaries and entries of one library; libtorch_cuda has some thousands."""


class CodeObject(msgspec.Struct, frozen=True):
    """One code object of a fat binary."""

    kind: int
    capability: str
    """``major.minor`` with the suffix ``a`` or ``f``."""


class LibraryGpuCode(msgspec.Struct, frozen=True):
    """Capabilities for which a library holds code, ascending."""

    sass: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    found: bool = False
    """Whether there is any GPU code at all, also in fewer fat binaries than `COMMON` asks, and also ROCm's."""


def capability(architecture: int, flags: int) -> str:
    """``9.0a`` for 90 with the architecture-specific flag."""
    suffix = "a" if flags & FLAG_ARCHITECTURE_SPECIFIC else "f" if flags & FLAG_FAMILY_SPECIFIC else ""
    return f"{architecture // 10}.{architecture % 10}{suffix}"


def capability_key(text: str) -> tuple[int, int, str]:
    """Sort key of a capability such as ``12.0`` or ``9.0a``."""
    number = text.rstrip("af")
    major, _, minor = number.partition(".")
    return int(major), int(minor or 0), text[len(number) :]


def read(library: Elf, share: float = COMMON) -> LibraryGpuCode:
    """Return the GPU code that `library` holds, where at least `share` of its fat binaries have it.

    Raises `ElfError` when a fat binary is damaged.
    """
    sections = library.sections()
    own = [section for section in sections if section.name in SECTIONS]
    # headers that overlap could make a small file take hours to walk
    if sum(section.size for section in own) > len(library.data):
        raise ElfError("sections of GPU code lie over each other, or beyond the end of the file")
    fatbins = (
        fatbin for section in own for fatbin in walk(library.data, section.offset, section.offset + section.size)
    )
    code = summarise(fatbins, share)
    return msgspec.structs.replace(code, found=code.found or any(item.name == ROCM_SECTION for item in sections))


def walk(data: bytes | mmap.mmap, start: int, end: int) -> Iterator[tuple[CodeObject, ...]]:
    """Yield the entries of each fat binary between two offsets. Raises `ElfError` for damaged ones."""
    if end > len(data):
        raise ElfError("a section of GPU code lies beyond the end of the file")
    position, count = start, 0
    while (position := _next(data, position, start, end)) >= 0:
        _, _, header_size, body_size = _HEADER.unpack_from(data, position)
        if header_size < _HEADER.size:
            raise ElfError("a fat binary without a header")
        body = position + header_size
        entries = tuple(_entries(data, body, min(body + body_size, end)))
        count += 1 + len(entries)
        if count > _MOST:
            raise ElfError("more GPU code than any library has")
        yield entries
        position = body + body_size
        position += -(position - start) % _ALIGNMENT


def _next(data: bytes | mmap.mmap, position: int, start: int, end: int) -> int:
    """Where the next fat binary begins, after the padding of merged sections; -1 where there is none."""
    limit = min(end - _HEADER.size + len(_MAGIC_BYTES), position + _LONGEST_PADDING)
    while position < limit:
        position = data.find(_MAGIC_BYTES, position, limit)
        if position < 0 or (position - start) % _ALIGNMENT == 0:
            return position
        position += 1
    return -1


def _entries(data: bytes | mmap.mmap, position: int, end: int) -> Iterator[CodeObject]:
    while position + _ENTRY.size <= end:
        kind, header_size, payload, architecture, flags = _ENTRY.unpack_from(data, position)
        if header_size < _ENTRY.size:
            raise ElfError("a fat binary entry without a header")
        if kind in (KIND_PTX, KIND_SASS):
            yield _entry(kind, architecture, flags)
        position += header_size + payload


@lru_cache(maxsize=256)
def _entry(kind: int, architecture: int, flags: int) -> CodeObject:
    """Thousands of entries are of a dozen kinds."""
    return CodeObject(kind, capability(architecture, flags))


def summarise(fatbins: Iterable[tuple[CodeObject, ...]], share: float = COMMON) -> LibraryGpuCode:
    """What that share of the fat binaries hold: see `COMMON`."""
    counts: dict[int, Counter[str]] = {KIND_PTX: Counter(), KIND_SASS: Counter()}
    total = 0
    for entries in fatbins:
        total += bool(entries)
        for kind, name in {(item.kind, item.capability) for item in entries}:
            counts[kind][name] += 1
    sass, ptx = counts[KIND_SASS], counts[KIND_PTX]
    least = share * total
    return LibraryGpuCode(sass=_common(sass, least), ptx=_common(ptx, least), found=bool(sass or ptx))


def _common(counts: Counter[str], least: float) -> tuple[str, ...]:
    kept = [name for name, count in counts.items() if count >= least]
    return tuple(sorted(kept, key=capability_key))
