"""What a wheel of the torch family says of itself, from the few parts of it that tell.

A wheel of torch has half a gigabyte; its directory, metadata and two small files have a few hundred kilobytes. Over the
network they come by range requests.
"""

from __future__ import annotations

import ast
import io
import re
import zipfile
from collections.abc import Collection, Iterator, Mapping
from email.parser import HeaderParser
from typing import TYPE_CHECKING, BinaryIO, Literal

from envmedic.installers.wheels import wheel_files
from envmedic.installers.wheels.remote_metadata import RangeFile, local_file
from envmedic.model.answers.family import Offered, WheelContents

if TYPE_CHECKING:
    from envmedic.installers.index.http import IndexSession

TAIL = 2 << 20
"""Bytes of the first request: the directory of a wheel of torch has 1.3 million, of a companion some thousands."""
_NEAR = 512 << 10
"""Members that lie so near to each other are asked for together."""
_HEADER = 512
"""More than a member's own header has, with its name: 30 bytes and the name (PKWARE's APPNOTE, 4.3.7)."""
_LARGEST_LIST = 16 << 10
"""Characters of torch's own list of its builds: the longest known one has a thousand."""
_VERSION = re.compile(r"^__version__\b[^=\n]*=\s*['\"]([\w.+!-]+)['\"]", re.MULTILINE)
_CUDA = re.compile(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)['\"]", re.MULTILINE)
_BUILDS = re.compile(r"^PYTORCH_RELEASES_CODE_CC\b[^=\n]*=\s*(?=\{)", re.MULTILINE)
_FLAGS = re.compile(rb"(?:(?:sm|compute)_\d+[af]?[ \0])+")
_FLAG = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")
_NUMPY = {b"numpy._core": 2, b"numpy.core": 1}
"""What a library imports NumPy's interface from, by the generation that it was compiled against."""
ANY_MACHINE = ""
"""Stands for the machine in the lists of torch 2.11 and 2.12, which have one for all."""
LIBRARY = "torch/lib/libtorch_python.so"
"""It has torch's own list of the capabilities that it was built for."""


Part = Literal["version", "builds", "library"]
"""What is read besides the metadata; `library` has ten millions packed."""


def read(file: Offered, session: IndexSession, parts: Collection[Part] = ("version", "builds")) -> WheelContents:
    """Return what a wheel says of itself, as far as `parts` ask.

    Raises IntegrityError for no readable wheel, NetworkError, and NoRanges for a server that sends whole files only.
    """
    path = local_file(file.url)
    try:
        if path is not None:
            with path.open("rb") as local:
                return _contents(file, local, parts)
        size = file.size_bytes or int(session.request("HEAD", file.url).headers["Content-Length"])
        with io.BufferedReader(RemoteParts(file.url, size, session), 1 << 16) as remote:
            return _contents(file, remote, parts)
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise wheel_files.broken_wheel(file.filename, str(error)) from error


class RemoteParts(RangeFile):
    """A remote file of which parts are kept: the end of it, and what `ahead` brought."""

    def __init__(self, url: str, size: int, session: IndexSession, *, tail: int = TAIL) -> None:
        super().__init__(url, size, session)
        self._kept: list[tuple[int, bytes]] = []
        self._size = size
        self.ahead(max(0, size - tail), size)

    def ahead(self, first: int, last: int) -> None:
        """Bring the bytes from `first` to before `last`, unless they are here."""
        last = min(last, self._size)
        if last > first and not any(start <= first and last <= start + len(kept) for start, kept in self._kept):
            self._kept.append((first, self._fetch(first, last - 1)))

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # narrower than WriteableBuffer
        """Fill `buffer` from what is kept, else over the network."""
        here = self.tell()
        for start, kept in self._kept:
            if start <= here < start + len(kept):
                content = kept[here - start : here - start + len(buffer)]
                buffer[: len(content)] = content
                self.seek(here + len(content))
                return len(content)
        return super().readinto(buffer)


def _contents(file: Offered, source: BinaryIO, parts: Collection[Part]) -> WheelContents:
    with wheel_files.unpacking(), zipfile.ZipFile(source) as archive:
        names = archive.namelist()
        metadata = [name for name in names if wheel_files.is_metadata(name)]
        if len(metadata) != 1:
            raise ValueError("it has no *.dist-info/METADATA")
        top = metadata[0].partition("-")[0]
        places = {"version": f"{top}/version.py", "builds": f"{top}/cuda/__init__.py", "library": LIBRARY}
        wanted = {places[part] for part in parts} & set(names)
        if isinstance(source, io.BufferedReader) and isinstance(source.raw, RemoteParts):
            for first, last in _spans(archive, {metadata[0], *wanted}):
                source.raw.ahead(first, last)
        header = HeaderParser().parsestr(wheel_files.member(archive, metadata[0]).decode("utf-8", "replace"))
        texts = {name: _text(archive, name) for name in wanted - {LIBRARY}}
        binary = archive.read(LIBRARY) if LIBRARY in wanted else b""
    requires_python = header.get("Requires-Python")
    own = texts.get(f"{top}/version.py", "")
    version, cuda = _VERSION.search(own), _CUDA.search(own)
    return WheelContents(
        filename=file.filename,
        requires=tuple(str(value) for value in header.get_all("Requires-Dist", ())),
        requires_python=str(requires_python) if requires_python else None,
        version=version[1] if version else None,
        cuda=cuda[1] if cuda else None,
        builds=builds(texts.get(f"{top}/cuda/__init__.py", "")),
        sass=tuple(_flags(binary, "sm")),
        ptx=tuple(_flags(binary, "compute")),
        numpy_abi=next((abi for name, abi in _NUMPY.items() if name in binary), None),
    )


def _text(archive: zipfile.ZipFile, name: str) -> str:
    return wheel_files.member(archive, name).decode("utf-8", "replace")


def _spans(archive: zipfile.ZipFile, names: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of these members in the file, neighbours as one."""
    places = sorted(
        (item.header_offset, item.header_offset + item.compress_size + _HEADER)
        for item in archive.infolist()
        if item.filename in names
    )
    first, last = places[0]
    for start, end in places[1:]:
        if start - last > _NEAR:
            yield first, last
            first = start
        last = end
    yield first, last


def builds(source: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return torch's list of the builds of its release: CUDA version → machine → compute capabilities.

    Empty without the list, or for one that is no such table: `source` comes from a wheel that nobody has checked.
    """
    begun = _BUILDS.search(source)
    if begun is None:
        return {}
    text = source[begun.end() : begun.end() + _LARGEST_LIST]
    try:
        # a table ends where a line begins with its brace
        value = ast.literal_eval(text[: text.index("\n}") + 2])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    if not isinstance(value, Mapping):
        return {}
    return {str(cuda): found for cuda, item in value.items() if (found := _by_machine(item))}


def _by_machine(item: object) -> dict[str, tuple[str, ...]]:
    each = item if isinstance(item, Mapping) else {ANY_MACHINE: item}
    return {str(machine): codes for machine, listed in each.items() if (codes := _capabilities(listed))}


def _capabilities(listed: object) -> tuple[str, ...]:
    if not isinstance(listed, set | list | tuple) or not all(isinstance(code, int) for code in listed):
        return ()
    return tuple(f"{code // 10}.{code % 10}" for code in sorted(listed))


def _flags(binary: bytes, kind: str) -> Iterator[str]:
    """Yield the capabilities of the compiler's flags that torch keeps in its library, in ascending order."""
    longest = max(_FLAGS.findall(binary), key=len, default=b"")
    found = {(int(one[2]), int(one[3]), one[4]) for one in _FLAG.finditer(longest.decode()) if one[1] == kind}
    yield from (f"{major}.{minor}{suffix}" for major, minor, suffix in sorted(found))
