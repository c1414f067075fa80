"""A log as blocks of about a megabyte, each with whole lines that are cut out only where they are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from envmedic.playbook.lines import LINE_LIMIT, WINDOW_OVERLAP

BLOCK_BYTES = 1 << 20
JOINED_LINES = 3
"""A wrapped message is looked for in a line and up to this many less one after it."""

Begin = tuple[int, int]
"""A line of a block: its number, from 0, and where it begins."""


class Block(msgspec.Struct, frozen=True):
    """Whole lines of a log, or a window of one line that is longer than a block."""

    number: int
    """Line number of its first line."""
    content: bytes
    starts: int
    """Lines at its beginning at which matches may start; the rest is context, and comes again."""
    end: int | None = None
    """Where its last whole line ends in `content`, which is not cut there to save a copy."""

    def every_line(self) -> Iterator[Begin]:
        """All lines at which matches may start."""
        begin = 0
        for number in range(self.starts):
            yield number, begin
            begin = self.content.find(b"\n", begin) + 1
            if not begin:
                return

    def starting(self, begun: Iterable[Begin]) -> list[Begin]:
        """The lines at which a match may start that has a literal beginning on one of `begun`."""
        found: dict[int, int] = {}
        for number, begin in begun:
            for before in range(number, max(-1, number - JOINED_LINES), -1):
                if before in found:
                    break
                found[before] = begin
                begin = self.content.rfind(b"\n", 0, max(0, begin - 1)) + 1  # noqa: PLW2901  # of the line before
        return sorted((number, begin) for number, begin in found.items() if number < self.starts)

    def window(self, begin: int) -> tuple[bytes, ...]:
        """The line that begins at `begin` with those that may continue it: none where one is too long for that."""
        limit = len(self.content) if self.end is None else self.end
        lines: list[bytes] = []
        while len(lines) < JOINED_LINES:
            found = self.content.find(b"\n", begin, limit)
            stop = limit if found < 0 else found
            too_long = stop - begin > LINE_LIMIT
            if too_long and lines:
                return (lines[0],)
            lines.append(self.content[begin:stop])
            if too_long or found < 0:
                break
            begin = stop + 1
        return tuple(lines)


def joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as chunks, so that both ways of reading are one."""
    pending: list[bytes] = []
    size = 0
    for line in lines:
        pending.append(line if line.endswith(b"\n") else line + b"\n")
        size += len(pending[-1])
        if size >= BLOCK_BYTES:
            yield b"".join(pending)
            pending, size = [], 0
    yield b"".join(pending)


def blocks(chunks: Iterable[bytes]) -> Iterator[Block]:
    """Cut a stream at line ends into blocks that share their last lines with the next block."""
    number, pending = 1, b""
    for chunk in chunks:
        pending += chunk
        while len(pending) >= BLOCK_BYTES:
            end = pending.rfind(b"\n") + 1
            if not end:  # one line longer than a block
                yield Block(number, pending, 1)
                pending = pending[-WINDOW_OVERLAP:]
                break
            keep = _context_start(pending, end)
            starts = pending.count(b"\n", 0, keep)
            yield Block(number, pending, starts, end)
            number += starts
            pending = pending[keep:]
    if pending:
        yield Block(number, pending, pending.count(b"\n") + 1)


def _context_start(pending: bytes, end: int) -> int:
    """Where the lines begin that come again in the next block; `end` when they are too long for that."""
    start = end
    for _ in range(JOINED_LINES - 1):
        start = pending.rfind(b"\n", 0, max(start - 1, 0)) + 1
    return start if start and end - start < LINE_LIMIT else end
