"""The dynamic part of an ELF file (64-bit, little-endian), read over a memory map without loading it.

What is read is what the run-time loader reads: program headers, the dynamic section, the symbol table and
its GNU hash table. Looking a name up in that table is what makes a whole load check take milliseconds: the
sets of all exported names of torch's libraries would hold 250,000 strings.
Formats: System V gABI chapters 4 and 5; the GNU hash table as binutils and glibc's ``dl-lookup.c`` have it.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from envmedic.errors import require_spare

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ = 1, 4, 5, 6, 10
DT_SONAME, DT_RPATH, DT_RUNPATH, DT_GNU_HASH = 14, 15, 29, 0x6FFFFEF5
DT_VERSYM, DT_VERDEF, DT_VERDEFNUM = 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD
DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF
SHT_DYNSYM = 11
STB_WEAK = 2
SHN_UNDEF = 0
VERSION_HIDDEN = 0x8000
"""Bit of a symbol's version that is no part of its index."""

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC = struct.Struct("<qQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_WORD = struct.Struct("<I")
_QUAD = struct.Struct("<Q")
_NUL = b"\0"
_MOST_SYMBOLS = 1 << 22
"""Ten times what the largest libraries have; a table that says more is damage, or made to fill the memory."""
_MOST_DYNAMIC_BYTES = 1 << 20
"""Of the dynamic section, which has some fifty entries of 16 bytes."""
_LONGEST_NAME = 1 << 16
"""Bytes of a symbol's name; those of C++ have some thousands."""
_MOST_NAME_BYTES = 1 << 28
"""Of the names that are read at once: names may overlap, so a small file could state more than any memory holds."""
_LONGEST_CHAIN = 1024
"""Symbols of one bucket of a hash table; linkers make four or so."""
DAMAGE = (struct.error, IndexError, ValueError, OverflowError)
"""Errors raised by reads at offsets outside the file."""


class ElfError(Exception):
    """The file is no ELF file that this reader knows; the message says in which way."""


class Section(msgspec.Struct, frozen=True):
    """One entry of the section header table."""

    name: str
    kind: int
    offset: int
    size: int


class _HashTable(msgspec.Struct, frozen=True):
    """Where the parts of a GNU hash table lie, as file offsets."""

    bucket_count: int
    first_symbol: int
    bloom_words: int
    bloom_shift: int
    bloom: int
    buckets: int
    chains: int


class _Dynamic(msgspec.Struct):
    """The dynamic section's entries, by tag."""

    values: dict[int, list[int]] = msgspec.field(default_factory=dict)

    def one(self, tag: int) -> int | None:
        """The first value of `tag`."""
        found = self.values.get(tag)
        return found[0] if found else None


def gnu_hash(name: bytes) -> int:
    """Hash of a symbol name in GNU hash tables (Bernstein's, 32 bits)."""
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


class Elf:
    """An open ELF file; `close` it. Raises `ElfError` for anything malformed, OSError when it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = _map(path)
        self._exports: frozenset[bytes] | None = None
        try:
            self._read()
        except DAMAGE as error:
            self.close()
            raise ElfError(f"truncated or damaged ELF file ({error})") from error
        except ElfError:
            self.close()
            raise

    def close(self) -> None:
        """Unmap the file."""
        self.data.close()

    def _read(self) -> None:
        header = _HEADER.unpack_from(self.data, 0)
        _check_identity(header[0])
        self.machine: int = header[2]
        self._section_table = (header[6], header[12], header[13])
        segments = [_SEGMENT.unpack_from(self.data, header[5] + index * header[9]) for index in range(header[10])]
        self._loads = [(item[3], item[2], item[5]) for item in segments if item[0] == PT_LOAD]
        self._check_extent()
        self._dynamic = self._read_dynamic(segments)
        self._strings = self._offset(self._dynamic.one(DT_STRTAB) or 0)
        self._strings_end = min(self._strings + (self._dynamic.one(DT_STRSZ) or 0), len(self.data))
        self._symbols = self._offset(self._dynamic.one(DT_SYMTAB) or 0)
        self._hash = self._read_hash()
        self.needed = tuple(self._names(DT_NEEDED))
        self.soname = next(iter(self._names(DT_SONAME)), None)
        self.rpath = _split_paths(self._names(DT_RPATH))
        self.runpath = _split_paths(self._names(DT_RUNPATH))

    def _check_extent(self) -> None:
        """Refuse a file that ends before its last loaded byte: the loader would die of SIGBUS."""
        end = max((offset + size for _, offset, size in self._loads), default=0)
        if end > len(self.data):
            raise ElfError(f"truncated: {len(self.data)} of at least {end} bytes")

    def _read_dynamic(self, segments: list[tuple[int, ...]]) -> _Dynamic:
        dynamic = _Dynamic()
        place = next(((item[2], item[5]) for item in segments if item[0] == PT_DYNAMIC), None)
        if place is None:
            return dynamic
        # `iter_unpack` needs a whole number of entries
        size = min(place[1], _MOST_DYNAMIC_BYTES) // _DYNAMIC.size * _DYNAMIC.size
        for tag, value in _DYNAMIC.iter_unpack(self.data[place[0] : place[0] + size]):
            if tag == 0:
                break
            dynamic.values.setdefault(tag, []).append(value)
        return dynamic

    def _offset(self, address: int) -> int:
        """File offset of a virtual address (0 stays 0: the entry is absent)."""
        if address == 0:
            return 0
        for start, offset, size in self._loads:
            if start <= address < start + size:
                return int(address - start + offset)
        raise ElfError(f"address {address:#x} lies in no segment")

    def _text(self, offset: int) -> bytes:
        start = self._strings + offset
        if not self._strings <= start < self._strings_end:
            raise ElfError("a name lies outside the string table")
        return _string(self.data, start)

    def _names(self, tag: int) -> list[str]:
        return [name.decode("utf-8", "replace") for name in self._named(self._dynamic.values.get(tag, ()))]

    def _read_hash(self) -> _HashTable | None:
        start = self._offset(self._dynamic.one(DT_GNU_HASH) or 0)
        if not start:
            return None
        count, first, words, shift = struct.unpack_from("<IIII", self.data, start)
        bloom = start + 16
        buckets = bloom + 8 * words
        chains = buckets + 4 * count
        if not count or not words or chains > len(self.data) or count > _MOST_SYMBOLS:
            raise ElfError("damaged GNU hash table")
        return _HashTable(count, first, words, shift, bloom, buckets, chains)

    def sections(self) -> tuple[Section, ...]:
        """The section headers; empty where they were stripped. Raises `ElfError` when they are damaged."""
        table, count, names_index = self._section_table
        if not table or not count:
            return ()
        try:
            raw = [_SECTION.unpack_from(self.data, table + index * _SECTION.size) for index in range(count)]
            names = raw[names_index][4]
            return tuple(Section(self._section_name(names + item[0]), item[1], item[4], item[5]) for item in raw)
        except DAMAGE as error:
            raise ElfError(f"damaged section headers ({error})") from error

    def _section_name(self, start: int) -> str:
        return _string(self.data, start).decode("utf-8", "replace")

    def symbol_count(self) -> int:
        """Entries of the dynamic symbol table. Raises `ElfError` where that is damaged."""
        try:
            count = self._stated_symbols()
        except DAMAGE as error:
            raise ElfError(f"damaged symbol table ({error})") from error
        if count > _MOST_SYMBOLS:
            raise ElfError(f"damaged symbol table ({count} symbols)")
        return count

    def _stated_symbols(self) -> int:
        """By DT_HASH, or else the section header, or else the GNU hash table."""
        table = self._offset(self._dynamic.one(DT_HASH) or 0)
        if table:
            return int(_WORD.unpack_from(self.data, table + 4)[0])
        section = next((item for item in self.sections() if item.kind == SHT_DYNSYM), None)
        if section is not None:
            return section.size // _SYMBOL.size
        return self._count_by_hash()

    def _count_by_hash(self) -> int:
        """Entries up to the end of the last chain, for files without section headers and DT_HASH."""
        table = self._hash
        if table is None:
            return 0
        buckets = struct.unpack_from(f"<{table.bucket_count}I", self.data, table.buckets)
        index: int = max(buckets)
        if index < table.first_symbol:
            return table.first_symbol
        for last in range(index, index + _LONGEST_CHAIN):
            if _WORD.unpack_from(self.data, table.chains + 4 * (last - table.first_symbol))[0] & 1:
                return last + 1
        raise ElfError("damaged GNU hash table")

    def undefined(self, without: Collection[int] = (), *, mangled: bool = True) -> tuple[bytes, ...]:
        """Names that must be found elsewhere at load time; weak ones may stay undefined and are left out.

        Also left out are those bound to a version whose index is in `without` (see `symbol_versions`), and,
        unless `mangled`, those of C++.
        """
        rows = self._rows(self._unhashed())
        wanted = [
            (index, row[0]) for index, row in enumerate(rows, 1) if row[3] == SHN_UNDEF and row[1] >> 4 != STB_WEAK
        ]
        if not mangled:
            data, strings = self.data, self._strings
            wanted = [item for item in wanted if data[strings + item[1] : strings + item[1] + 2] != b"_Z"]
        versions = self.table(DT_VERSYM) if without else 0
        if versions and wanted:
            count = wanted[-1][0] + 1
            of = struct.unpack(f"<{count}H", self.data[versions : versions + 2 * count].ljust(2 * count, _NUL))
            wanted = [item for item in wanted if of[item[0]] & ~VERSION_HIDDEN not in without]
        return tuple(self._named(offset for _, offset in wanted if offset))

    def table(self, tag: int) -> int:
        """File offset of the table that a dynamic entry points to, 0 where there is none."""
        return self._offset(self._dynamic.one(tag) or 0)

    def number(self, tag: int) -> int:
        """Value of a dynamic entry, 0 where there is none."""
        return self._dynamic.one(tag) or 0

    def text(self, offset: int) -> str:
        """A string of the dynamic string table. Raises `ElfError` when it lies outside."""
        return self._text(offset).decode("utf-8", "replace")

    def exports(self) -> frozenset[bytes]:
        """All defined dynamic names (slow for large libraries; `defines` asks for one)."""
        if self._exports is None:
            rows = self._rows(None)
            self._exports = frozenset(self._named(row[0] for row in rows if row[3] != SHN_UNDEF and row[0]))
        return self._exports

    def _unhashed(self) -> int | None:
        """Index of the first symbol in the hash table, before which all undefined ones lie; None: no such bound."""
        table = self._hash
        if table is None:
            return None
        buckets = self.data[table.buckets : table.chains]
        # with all buckets empty, the first symbol in the table states nothing: linkers write 1, or any number
        return table.first_symbol if buckets.strip(_NUL) else None

    def _rows(self, count: int | None) -> Iterator[tuple[int, ...]]:
        """The first `count` dynamic symbols (None: all) but the very first, which is empty."""
        if not self._symbols:
            return iter(())
        end = self._symbols + (self.symbol_count() if count is None else count) * _SYMBOL.size
        if end > len(self.data):
            raise ElfError("the symbol table lies beyond the end of the file")
        return _SYMBOL.iter_unpack(self.data[self._symbols + _SYMBOL.size : end])

    def _named(self, offsets: Iterable[int]) -> list[bytes]:
        """The names at these places of the string table. Raises `ElfError` where they are damaged, or too many."""
        data, strings, limit = self.data, self._strings, self._strings_end
        found: list[bytes] = []
        size = 0
        try:
            # names may overlap, so the sum is limited too and not only the length of each
            for offset in offsets:  # as `_text` does, without a call for each of twenty thousand
                start = strings + offset
                end = data.find(_NUL, start, start + _LONGEST_NAME) if start < limit else -1
                size += end - start
                if end < 0 or size > _MOST_NAME_BYTES:
                    raise ElfError("a name lies outside the string table, has no end, or is longer than any file's")
                found.append(data[start:end])
        except DAMAGE as error:
            raise ElfError(f"damaged symbol table ({error})") from error
        return found

    def defines(self, name: bytes, hashed: int) -> bool:
        """Whether it exports `name`; `hashed` is ``gnu_hash(name)``, computed once for many libraries."""
        return not self.lacking({name: hashed})

    def lacking(self, names: Mapping[bytes, int]) -> dict[bytes, int]:
        """Those of `names`, each with its hash, that it does not export: `defines` for thousands of names at once.

        The table's filter rules nearly all of them out, without a look at chains and symbols.
        """
        table = self._hash
        if table is None:
            exports = self.exports()
            return {name: hashed for name, hashed in names.items() if name not in exports}
        data, bloom, words, shift, quad = (
            self.data,
            table.bloom,
            table.bloom_words,
            table.bloom_shift,
            _QUAD.unpack_from,
        )
        try:
            likely = [
                (name, hashed)
                for name, hashed in names.items()
                if ((word := quad(data, bloom + 8 * ((hashed >> 6) % words))[0]) >> (hashed & 63))
                & (word >> ((hashed >> shift) & 63))
                & 1
            ]
            found = {name for name, hashed in likely if self._chained(table, name, hashed)}
        except DAMAGE as error:
            raise ElfError(f"damaged GNU hash table ({error})") from error
        return {name: hashed for name, hashed in names.items() if name not in found}

    def _chained(self, table: _HashTable, name: bytes, hashed: int) -> bool:
        index = _WORD.unpack_from(self.data, table.buckets + 4 * (hashed % table.bucket_count))[0]
        if index < table.first_symbol:
            return False
        for place in range(index, index + _LONGEST_CHAIN):
            chain = _WORD.unpack_from(self.data, table.chains + 4 * (place - table.first_symbol))[0]
            if (chain | 1) == (hashed | 1) and self._is_definition(place, name):
                return True
            # bit 0 of an entry marks the end of its chain; the other 31 are those of the hash
            if chain & 1:
                return False
        raise ElfError("damaged GNU hash table")

    def _is_definition(self, index: int, name: bytes) -> bool:
        row = _SYMBOL.unpack_from(self.data, self._symbols + index * _SYMBOL.size)
        return bool(row[3] != SHN_UNDEF and self._text(row[0]) == name)


def _map(path: Path) -> mmap.mmap:
    """Map a regular file; opened without blocking, since a FIFO in its place would wait for a writer.

    Raises OSError, and Exhausted where memory or descriptors ran out.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        require_spare(error)
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ElfError("not a regular file")
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # an empty file cannot be mapped
        raise ElfError("empty file") from error
    except OSError as error:
        require_spare(error)
        raise
    finally:
        # the mapping keeps the file: without this, a check of torch would hold hundreds of descriptors
        os.close(descriptor)


def _string(data: mmap.mmap, start: int) -> bytes:
    end = data.find(_NUL, start, start + _LONGEST_NAME)
    if end < 0:
        raise ElfError("a name has no end")
    return data[start:end]


def _check_identity(identity: bytes) -> None:
    if identity[:4] != b"\x7fELF":
        raise ElfError("not an ELF file")
    if identity[4] != 2 or identity[5] != 1:  # noqa: PLR2004  # ELFCLASS64, ELFDATA2LSB
        raise ElfError("not a 64-bit little-endian ELF file")


def _split_paths(names: list[str]) -> tuple[str, ...]:
    return tuple(part for name in names for part in name.split(":") if part)
