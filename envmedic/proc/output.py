"""What commands print, kept in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from envmedic.model.ports import OnLine

KEPT_CHARACTERS = 256 * 1024
KEPT_BYTES = 32 << 20
"""Of the beginning, and as many of the end: a cause stands at either, repetitions between."""
LONGEST_LINE = 64 << 10
"""A line that goes on is kept in pieces of this many bytes, so that progress bars cost no memory."""


class OutputTail:
    """The beginning and the end of one or several streams, line by line in the order in which lines ended."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._limit = kept_bytes
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._open: dict[str, bytes] = {}
        self.left_out = 0
        """Bytes between beginning and end that were dropped."""

    def feed(self, stream: str, data: bytes) -> None:
        """Take what came on `stream`; an unfinished line waits for its rest."""
        data = self._open.pop(stream, b"") + data
        end = data.rfind(b"\n") + 1
        if end:
            self._keep(data[:end])
        rest = data[end:]
        if len(rest) > LONGEST_LINE:
            self._keep(rest)
        elif rest:
            self._open[stream] = rest

    def _keep(self, lines: bytes) -> None:
        room = self._limit - len(self._head)
        if room >= len(lines) and not self._tail:
            self._head += lines
            return
        self._tail.append(lines)
        self._tail_size += len(lines)
        while self._tail_size - len(self._tail[0]) >= self._limit:
            dropped = len(self._tail.popleft())
            self._tail_size -= dropped
            self.left_out += dropped

    def lines(self) -> Iterator[bytes]:
        """All that was kept, unfinished lines last."""
        yield from bytes(self._head).splitlines(keepends=True)
        for chunk in self._tail:
            yield from chunk.splitlines(keepends=True)
        for rest in self._open.values():
            yield rest + b"\n"


class Tail:
    """The end of a stream of lines, at most `KEPT_CHARACTERS` long, each line passed on as it comes."""

    def __init__(self, on_line: OnLine | None = None) -> None:
        self._lines: deque[str] = deque()
        self._length = 0
        self._on_line = on_line

    def feed(self, line: str) -> None:
        """Take one line, with or without its line end."""
        self._lines.append(line if line.endswith("\n") else line + "\n")
        self._length += len(self._lines[-1])
        while self._length > KEPT_CHARACTERS and len(self._lines) > 1:
            self._length -= len(self._lines.popleft())
        if self._on_line is not None:
            self._on_line(line.rstrip("\r\n"))

    def text(self) -> str:
        """What was kept."""
        return "".join(self._lines)[-KEPT_CHARACTERS:]


class Lines:
    """Bytes cut into lines for a `Tail`; a line that never ends is passed on in pieces."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take what came; nothing means the end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._tail.feed(line.decode("utf-8", "replace") + "\n")
        if self._rest and (not data or len(self._rest) > KEPT_CHARACTERS):
            self._tail.feed(self._rest.decode("utf-8", "replace"))
            self._rest = b""

    def text(self) -> str:
        """What was kept."""
        self.feed(b"")
        return self._tail.text()
