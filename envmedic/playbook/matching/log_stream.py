"""Streaming reader of logs, in bounded memory."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from envmedic.errors import InputError

CHUNK_BYTES = 1 << 20
STDIN = "-"
_SNIFFED_BYTES = 8192
_FEW_ZEROS = 16
"""A text that a full disk or a crash cut off may contain some zeros."""
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class LogStream:
    """A log that yields lines, or chunks for the matcher, which is faster on chunks."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.size = 0
        """Bytes read so far."""
        self.binary = False
        """Whether it begins like a program or an archive: with bytes of 0, which no text contains."""

    def __iter__(self) -> Iterator[bytes]:
        """Yield lines without their ends. Each whole line is in memory, unlike in `chunks`."""
        rest = b""
        for chunk in self.chunks():
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            yield from lines
        if rest:
            yield rest

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes in chunks of at most `CHUNK_BYTES`. UTF-16 with a byte order mark becomes UTF-8.

        Raises `InputError` when the log cannot be opened or read.
        """
        try:
            if self.source == STDIN:
                yield from self._text(sys.stdin.buffer)
            else:
                # unbuffered: a buffer of its own would only copy each chunk once more
                with Path(self.source).open("rb", buffering=0) as stream:
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
        # `> log.txt` in Windows PowerShell writes UTF-16 with a byte order mark
        encoding = _UTF16.get(first[:2])
        if encoding is None:
            self.binary = first[:_SNIFFED_BYTES].count(0) > _FEW_ZEROS
            yield from self._counted(chain((first.removeprefix(codecs.BOM_UTF8),), chunks))
        else:
            yield from self._counted(_transcoded(chain((first[2:],), chunks), encoding))

    def _counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.size += len(chunk)
            yield chunk


def read_lines(source: str | Path) -> LogStream:
    """Return the log at the path `source`, or standard input for ``-``. Iteration opens it."""
    return LogStream(str(source))


def _raw(stream: BinaryIO) -> Iterator[bytes]:
    # read1 returns what a pipe has now; read would wait for a full chunk of a command that is still running
    read = getattr(stream, "read1", stream.read)
    while chunk := read(CHUNK_BYTES):
        yield chunk


def _transcoded(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    # incremental: a chunk may end inside a character
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")
