"""Reading logs as streams, in bounded memory."""

from __future__ import annotations

import codecs
import ctypes
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from envmedic.errors import InputError
from envmedic.playbook.matching.blocks import Numbering

CHUNK_BYTES = 1 << 20
STDIN = "-"
_KEPT_BYTES = 32 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""See ``mallopt(3)``."""
_SNIFFED_BYTES = 8192
_FEW_ZEROS = 16
"""A text that was cut off by a full disk or a crash may hold some."""
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class LogStream:
    """A log that can be walked by line, or by chunk for a matcher that is faster on those."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.size = 0
        """Bytes read so far."""
        self.begins = 0
        """Where the text begins in the file: after a byte order mark."""
        self.again = False
        """Whether the same bytes can be read once more: from a file, and as they stand there."""
        self.binary = False
        """Whether its beginning is that of a program or an archive: it holds bytes of 0, as no text does."""

    def __iter__(self) -> Iterator[bytes]:
        """Lines without their ends. A line is held in memory as a whole: see `chunks`."""
        rest = b""
        for chunk in self.chunks():
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            yield from lines
        if rest:
            yield rest

    def chunks(self) -> Iterator[bytes]:
        """The bytes in chunks of at most `CHUNK_BYTES`. UTF-16 with a byte order mark becomes UTF-8.

        Raises `InputError` when the log cannot be opened or read.
        """
        try:
            if self.source == STDIN:
                yield from self._text(sys.stdin.buffer)
            else:
                with Path(self.source).open("rb", buffering=0) as stream:
                    self.again = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
                    yield from self._text(stream)
        except OSError as error:
            raise InputError(
                f"the log {self.source} cannot be read",
                cause=error.strerror or str(error),
                hint="Give the path of a text file, or - to read standard input",
            ) from error

    def _text(self, stream: BinaryIO) -> Iterator[bytes]:
        chunks = _raw(stream)
        first = next(chunks, b"")
        encoding = _UTF16.get(first[:2])  # what PowerShell's redirection writes
        if encoding is None:
            self.binary = first[:_SNIFFED_BYTES].count(0) > _FEW_ZEROS
            text = first.removeprefix(codecs.BOM_UTF8)
            self.begins = len(first) - len(text)
            yield from self._counted(chain((text,), chunks))
        else:
            self.again = False
            yield from self._counted(_transcoded(chain((first[2:],), chunks), encoding))

    def _counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.size += len(chunk)
            yield chunk

    def numbering(self) -> Numbering:
        """What numbers the lines of its blocks: of a file, by reading what comes before a match once more.

        Counting is a third of the work of reading a log in which nothing is found.
        """
        return _Recounting(self)


class _Recounting(Numbering):
    def __init__(self, log: LogStream) -> None:
        super().__init__()
        self._log = log
        self._offset = 0
        """Of the next block."""
        self._counted = 0
        """Bytes in which the lines are counted."""

    def begin(self, content: bytes, passed: int) -> Callable[[], int]:
        if not self._log.again:
            return super().begin(content, passed)
        offset = self._offset
        self._offset += passed
        return lambda: self._line_at(offset)

    def _line_at(self, offset: int) -> int:
        """Count on to `offset`; blocks ask in their order. What was cut off the file meanwhile has no lines."""
        with Path(self._log.source).open("rb", buffering=0) as stream:
            stream.seek(self._log.begins + self._counted)
            while self._counted < offset and (chunk := stream.read(min(CHUNK_BYTES, offset - self._counted))):
                self._counted += len(chunk)
                self._number += chunk.count(b"\n")
        return self._number


def read_lines(source: str | Path) -> LogStream:
    """The log at the path `source`, or standard input for ``-``. Nothing is opened before it is walked."""
    return LogStream(str(source))


def keep_freed_memory() -> None:
    """Let glibc keep the memory of chunks for the next ones: its pages would come anew from the kernel for each.

    Without it, that is most of the time of reading a large log. Other C libraries stay as they are.
    """
    limit = getattr(ctypes.CDLL(None), "mallopt", None)
    if limit is not None:
        limit(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        limit(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def _raw(stream: BinaryIO) -> Iterator[bytes]:
    # what a pipe has so far is enough: a running command's output is seen as it comes
    read = getattr(stream, "read1", stream.read)
    while chunk := read(CHUNK_BYTES):
        yield chunk


def _transcoded(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")
