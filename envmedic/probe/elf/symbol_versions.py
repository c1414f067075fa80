"""Versions of symbols: what a library asks of another, and what a library defines.

A versioned symbol is bound to a name such as ``GLIBCXX_3.4.30`` of one library. The loader refuses a library
whose needed version the library found does not define, with "version not found"; one that defines no versions at
all is accepted. Format: Linux Standard Base, "Symbol Versioning" (Verneed, Verdef).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

import msgspec

from envmedic.probe.elf.dynamic import DAMAGE, DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM, Elf, ElfError

_NEED = struct.Struct("<HHIII")
_NEED_ENTRY = struct.Struct("<IHHII")
_DEFINITION = struct.Struct("<HHHHIII")
_WORD = struct.Struct("<I")
_WEAK = 0x2
_MOST = 4096
"""Entries after which a table is taken for damaged."""
_RUN_TIME = re.compile(r"(?:GLIBC|GLIBCXX|CXXABI|GCC)_[\d.]+$")
"""Versions of the C and C++ run-time libraries: each stands for one fixed set of symbols."""


class VersionNeed(msgspec.Struct, frozen=True):
    """One version that a library asks another one for."""

    soname: str
    version: str
    index: int
    weak: bool


def needs(elf: Elf) -> tuple[VersionNeed, ...]:
    """The versions that `elf` needs, in its order. Raises `ElfError` when the table is damaged."""
    position, count = elf.table(DT_VERNEED), elf.number(DT_VERNEEDNUM)
    found: list[VersionNeed] = []
    try:
        for _ in range(min(count, _MOST) if position else 0):
            _, entries, file, first, following = _NEED.unpack_from(elf.data, position)
            soname, entry = elf.text(file), position + first
            # before the inner loop: the count is 16 bits wide, and entries may overlap
            if len(found) + entries > _MOST:
                raise ElfError("damaged version table (too many entries)")
            for _ in range(entries):
                _, flags, index, name, step = _NEED_ENTRY.unpack_from(elf.data, entry)
                found.append(VersionNeed(soname, elf.text(name), index, bool(flags & _WEAK)))
                entry += step
            position += following
    except DAMAGE as error:
        raise ElfError(f"damaged version table ({error})") from error
    return tuple(found)


def definitions(elf: Elf) -> tuple[str, ...]:
    """The versions that `elf` defines, in its order, the first being its own name. Raises `ElfError`."""
    position, count = elf.table(DT_VERDEF), elf.number(DT_VERDEFNUM)
    found: list[str] = []
    try:
        for _ in range(min(count, _MOST) if position else 0):
            _, _, _, _, _, first, following = _DEFINITION.unpack_from(elf.data, position)
            (name,) = _WORD.unpack_from(elf.data, position + first)
            found.append(elf.text(name))
            position += following
    except DAMAGE as error:
        raise ElfError(f"damaged version table ({error})") from error
    return tuple(found)


def run_time_indexes(needed: Iterable[VersionNeed]) -> frozenset[int]:
    """Version indexes of the C and C++ run-time libraries: where such a version is there, so are its symbols."""
    return frozenset(need.index for need in needed if _RUN_TIME.match(need.version))
