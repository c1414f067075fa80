"""The end of what a program prints, line by line."""

from __future__ import annotations

from collections import deque

from envmedic.model.ports import OnLine

KEPT_CHARACTERS = 256 * 1024


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
